#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "chat/template_variables.h"
#include "jobs/decoder_session.h"
#include "spec/decoder_spec.h"

namespace muster {

class ReplyText;

/// What `muster generate` is asked to do.
struct GenerateOptions {
  std::filesystem::path source;  // a GGUF file or a folder in Hugging Face's layout
  std::string prompt;
  std::optional<std::string> system;  // what the template is told before the prompt
  TemplateVariables template_variables = {};
  bool is_raw = false;              // the prompt as it is, without the model's chat template
  std::uint32_t token_limit = 512;  // of the reply
  std::vector<std::string> stops;   // texts that end the reply; they are left out of it
  bool ignores_stop_ids = false;    // tokens that end a reply do not
  SamplingOptions sampling;
  DecoderPrecision precision = DecoderPrecision::Own;
  std::string precision_reason;  // why, where nobody has named it
  KvCacheDtype kv_cache_dtype = KvCacheDtype::Auto;
  bool has_prefix_cache = true;           // as DecoderSessionOptions
  std::uint32_t drafted_tokens_most = 0;  // as DecoderSessionOptions
  Device device;
  std::filesystem::path worker_program;
  std::filesystem::path torch_root;
};

enum class GenerateEnd : std::uint8_t {
  StopToken,
  StopString,
  Length,
  Interrupted,
};

/// "stop" of a token and of a string, "length", "interrupted".
std::string_view generate_end_name(GenerateEnd end);

/// The end of a reply whose text is finished: a stop string may be whole only with what was held
/// back until then.
GenerateEnd end_with(const ReplyText& text, GenerateEnd told);

/// A decoder as its worker has loaded it.
struct GenerateDecoder {
  std::uint64_t weights_bytes = 0;  // that the engine has allocated for them; on a CPU it packs
  /// On a CPU, beside those: norms, and tables that are read in the mapped file. The sum of both is
  /// what a plan counts as weights (spec/cpu_decoder_memory.h). nullopt: not known, or on a GPU.
  std::optional<std::uint64_t> unpacked_bytes = std::nullopt;
  std::uint32_t thread_count = 0;
  std::string decoder_class;
};

/// When the tokens of a reply came.
struct GenerateTimes {
  double first_token_seconds = 0;  // from the start of the call
  double prefill_seconds = 0;      // from a loaded model and a prompt to the first token
  double decode_seconds = 0;       // from the first token to the last
};

struct GenerateReport {
  GenerateEnd end = GenerateEnd::Length;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t reply_tokens = 0;
  std::uint32_t restart_count = 0;
  std::optional<GenerateDecoder> decoder;     // nullopt: interrupted before it was loaded
  std::optional<GenerateTimes> times;         // nullopt, as both below: no token came
  std::optional<std::uint64_t> cache_bytes;   // keys and values of prompt and reply, whole blocks
  std::optional<std::uint64_t> worker_bytes;  // its memory (PSS) behind the last token; nullopt:
                                              // the system does not say

  /// Tokens a second behind the first one; nullopt for a reply of one token.
  std::optional<double> tokens_per_second() const {
    if (reply_tokens < 2 || !times || times->decode_seconds <= 0) return std::nullopt;
    return (reply_tokens - 1) / times->decode_seconds;
  }
};

struct GenerateEvents {
  /// Text of the reply as it is certain; never ends within a character.
  std::function<Status(std::string_view)> on_text;
  std::function<void(const std::string&)> on_notice;
};

/// Errors: InvalidArgument for what is not UTF-8: "the prompt is not UTF-8 at byte 3".
Status check_prompt_text(const char* what, std::string_view text);

/// Tokens of the prompt and its reply at most, as is known before they are made: its worker gets a
/// cache for so many. Threads: pure.
std::uint64_t generate_tokens_most(const GenerateOptions& options, std::uint32_t length_max);

/// Continues one prompt on one device, and survives the death of its worker.
///
/// `cancelled` is looked at between tokens: the reply then ends there, as Interrupted.
/// Errors: those of the model's files; NotFound for a model without a chat template;
/// InvalidArgument (an option out of range, a prompt that is not UTF-8 or does not fit); those of
/// `DecoderSession` and of `on_text`.
Result<GenerateReport> generate_text(const GenerateOptions& options, const GenerateEvents& events,
                                     const Clock& clock, const std::function<bool()>& cancelled);

}  // namespace muster

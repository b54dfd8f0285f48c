#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/template_variables.h"
#include "cli/command.h"
#include "cli/decoder_choice.h"
#include "jobs/decoder_source.h"
#include "spec/device.h"
#include "spec/generation.h"

namespace muster {

/// --temperature to --seed, which `generate` and `chat` share.
std::vector<RunFlag> sampling_flags();

std::vector<RunFlag> joined(std::vector<RunFlag> flags, const std::vector<RunFlag>& more);

/// What these flags ask for; without --seed one is drawn.
///
/// Errors: InvalidArgument, naming the flag, its range and the nearest right form.
Result<SamplingOptions> sampling_options(const Arguments& arguments);

/// One of them, by its name: "--temperature". shown: what errors call it.
///
/// Errors: InvalidArgument as above, and for a name that is none.
Status set_sampling(std::string_view flag, std::string_view shown, const std::string& value,
                    SamplingOptions& sampling);

/// --top-k as it is given: "40", or "all".
std::string top_k_text(const SamplingOptions& sampling);

/// The same one as it is in another.
void reset_sampling(std::string_view flag, const SamplingOptions& from, SamplingOptions& to);

inline constexpr std::string_view kTemplateVariablesFlag = "--chat-template-kwargs";
/// What the chat template is told beside the conversation. Errors: InvalidArgument.
RunFlag template_variables_flag();
Result<TemplateVariables> template_variables_of(const Arguments& arguments);

/// --max-tokens; `otherwise` without it.
Result<std::uint32_t> reply_tokens_of(const Arguments& arguments, std::uint32_t otherwise);
Result<std::uint32_t> reply_tokens(const std::string& flag, const std::string& value);

/// The setting kv_cache_dtype.
KvCacheDtype kv_cache_dtype_of(const Config& config);

/// The setting num_speculative_tokens.
std::uint32_t drafted_tokens_most(const Config& config);

/// The model and what its replies are to be: of one (GenerateOptions) or of many (RepliesOptions).
/// --precision is looked at, and settled when the devices are known (decoder_choice.h).
///
/// Errors: InvalidArgument; those of find_decoder_source.
template <typename Options>
Status set_reply_options(const Arguments& arguments, Options& options) {
  options.system = arguments.value("--system");
  options.is_raw = arguments.has("--raw");
  for (const std::string_view of_template :
       {std::string_view("--system"), kTemplateVariablesFlag}) {
    if (!options.is_raw || !arguments.has(of_template)) continue;
    return Error{ErrorKind::InvalidArgument, "--raw has no place for " + std::string(of_template)};
  }
  options.template_variables = MUSTER_TRY(template_variables_of(arguments));
  options.token_limit = MUSTER_TRY(reply_tokens_of(arguments, options.token_limit));
  options.stops = arguments.values("--stop");
  options.ignores_stop_ids = arguments.has("--ignore-eos");
  options.sampling = MUSTER_TRY(sampling_options(arguments));
  MUSTER_TRY(named_precision(arguments));
  options.source = MUSTER_TRY(find_decoder_source(arguments.positionals.front()));
  return Done{};
}

/// Devices that compute a decoder, each with all of its cores.
struct DecoderDevices {
  std::vector<Device> devices;
  std::uint64_t free_bytes = 0;  // memory of the one that has the least
};

/// All of --devices; CPUs where it does not say which.
///
/// Errors: Unsupported where one is neither a CPU nor a GPU, and for both together; those of
/// finding them.
Result<DecoderDevices> decoder_devices(const CommandContext& context);

/// The device of --devices that computes a decoder: one CPU device, with all of its cores, or the
/// GPU that is named.
///
/// Errors: Unsupported, for several or none; those of finding them.
Result<Device> decoder_device(const CommandContext& context);

}  // namespace muster

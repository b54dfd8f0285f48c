// A reply may be interrupted at any moment: before the decoder is loaded, or before its first
// token. What is not known then is left out, since a 0 would be read as a measurement.

#include "cli/generate_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/decoder_choice.h"
#include "terminal/text_wrap.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

std::string megabytes(std::uint64_t bytes) {
  return fmt::format("{:.0f} MB", static_cast<double>(bytes) / 1e6);
}

// The time of the prompt stands apart, because it grows with the prompt and not with the reply.
std::string speed(const GenerateOptions& options, const GenerateReport& report) {
  if (report.end == GenerateEnd::Interrupted && report.reply_tokens == 0) {
    return "stopped before the first token";
  }
  auto text =
      fmt::format("{} tokens after {} of prompt", report.reply_tokens, report.prompt_tokens);
  if (const auto rate = report.tokens_per_second()) text += fmt::format(": {:.1f} tokens/s", *rate);
  if (report.times) {
    text += fmt::format("; first token after {:.2f} s, {:.2f} s of it for the prompt",
                        report.times->first_token_seconds, report.times->prefill_seconds);
  }
  text += cut_words(report.end, report.reply_tokens < options.token_limit);
  return text;
}

// As `muster plan` counts them.
std::string weights_text(const GenerateDecoder& decoder) {
  if (!decoder.unpacked_bytes) return megabytes(decoder.weights_bytes);
  return fmt::format("{} ({} packed, the rest as in the file)",
                     megabytes(decoder.weights_bytes + *decoder.unpacked_bytes),
                     megabytes(decoder.weights_bytes));
}

// Empty before the decoder was loaded.
std::string place(const GenerateOptions& options, const GenerateReport& report) {
  if (!report.decoder) return "";
  auto text = fmt::format("\n{}, {} threads, precision {}, {}: weights {}", options.device.name(),
                          report.decoder->thread_count, decoder_precision_name(options.precision),
                          report.decoder->decoder_class, weights_text(*report.decoder));
  if (report.cache_bytes) {
    text += ", keys and values ";
    if (options.kv_cache_dtype != KvCacheDtype::Auto) {
      text += fmt::format("in {} ", kv_cache_dtype_name(options.kv_cache_dtype));
    }
    text += megabytes(*report.cache_bytes);
  }
  if (report.worker_bytes) text += ", worker " + megabytes(*report.worker_bytes);
  return text;
}

template <typename T>
void put(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

}  // namespace

std::string_view cut_words(GenerateEnd end, bool is_context_full) {
  if (end == GenerateEnd::Interrupted) return "; stopped";
  if (end != GenerateEnd::Length) return "";
  return is_context_full ? "; the context has no room for more" : "; max-tokens is reached";
}

std::string generate_report_text(const GenerateOptions& options, const GenerateReport& report,
                                 std::size_t width) {
  auto text = speed(options, report) + place(options, report);
  if (report.reply_tokens > 0 && options.sampling.temperature > 0) {
    text += fmt::format("; seed {}", options.sampling.seed);
  }
  const auto why = precision_sentence({options.precision, options.precision_reason});
  if (!why.empty()) text += "\n" + why;
  std::string lines;
  for (const auto& line : split(text, '\n')) {
    lines += wrapped(line, {.width = width, .indent = 2});
  }
  return lines;
}

std::string generate_report_json(const GenerateOptions& options, const GenerateReport& report,
                                 const std::string& reply) {
  Json json{{"text", reply},
            {"finish_reason", generate_end_name(report.end)},
            {"prompt_tokens", report.prompt_tokens},
            {"completion_tokens", report.reply_tokens},
            {"precision", decoder_precision_name(options.precision)},
            {"kv_cache_dtype", kv_cache_dtype_name(options.kv_cache_dtype)}};
  if (options.sampling.temperature > 0) json["seed"] = options.sampling.seed;
  if (!options.precision_reason.empty()) json["precision_reason"] = options.precision_reason;
  if (report.decoder) json["decoder_class"] = report.decoder->decoder_class;
  json["device"] = options.device.name();
  if (report.decoder) json["threads"] = report.decoder->thread_count;
  if (report.times) {
    json["first_token_seconds"] = report.times->first_token_seconds;
    json["prefill_seconds"] = report.times->prefill_seconds;
    json["decode_seconds"] = report.times->decode_seconds;
  }
  if (report.decoder) {
    json["weights_bytes"] = report.decoder->weights_bytes;
    put(json, "unpacked_weights_bytes", report.decoder->unpacked_bytes);
  }
  put(json, "cache_bytes", report.cache_bytes);
  json["restarts"] = report.restart_count;
  put(json, "worker_bytes", report.worker_bytes);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muster

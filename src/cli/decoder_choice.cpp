// `--precision auto` of generate and chat: one worker measures before that of the replies starts.

#include "cli/decoder_choice.h"

#include <fmt/format.h>

#include "base/build_info.h"
#include "cli/corpus_command.h"
#include "cli/decoder_flags.h"
#include "cli/interrupt.h"
#include "cli/messages.h"
#include "cli/places.h"
#include "cli/serve_doors.h"
#include "jobs/decoder_precision.h"
#include "jobs/decoder_probe.h"
#include "modelfile/decoder_config.h"

namespace muster {

Result<std::optional<DecoderPrecision>> named_precision(const Arguments& arguments) {
  const auto word = arguments.value("--precision").value_or("auto");
  if (word == "auto") return std::optional<DecoderPrecision>();
  if (const auto known = parse_decoder_precision(word)) return known;
  return Error{ErrorKind::InvalidArgument,
               fmt::format("--precision must be auto, own, bf16, fp32 or int8: \"{}\"", word)};
}

// A worker would say the same, once it had linked torch and been given the model.
Status check_decoder_numbers(std::optional<DecoderPrecision> named, const Config& config,
                             const Device& device) {
  if (!runs_as_gpu(device.kind)) return Done{};
  if (named == DecoderPrecision::Own || named == DecoderPrecision::Int8) {
    return Error{
        ErrorKind::Unsupported,
        fmt::format("--precision {} is computed on CPUs only, and {} is a GPU: use bf16 or "
                    "fp32, or --devices cpu",
                    decoder_precision_name(*named), device.name())};
  }
  if (drafted_tokens_most(config) > 0) {
    const auto error = invalid_setting(
        config, SettingId::SpeculativeTokens,
        fmt::format("tokens are guessed ahead on CPUs only, and {} is a GPU: use 0, or "
                    "--devices cpu",
                    device.name()));
    return Error{ErrorKind::Unsupported, error.message};
  }
  const auto dtype = config.text(SettingId::KvCacheDtype).value_or("auto");
  if (dtype == kv_cache_dtype_name(KvCacheDtype::Auto)) return Done{};
  const auto error = invalid_setting(
      config, SettingId::KvCacheDtype,
      fmt::format("keys and values are kept in {} on CPUs only, and {} is a GPU: use auto, or "
                  "--devices cpu",
                  dtype, device.name()));
  return Error{ErrorKind::Unsupported, error.message};
}

Result<DecoderPrecisionChoice> chosen_precision(
    const CommandContext& context, const PrecisionPlace& place,
    const std::function<void(const std::string&)>& on_notice,
    const std::function<void()>& while_measuring) {
  if (const auto named = MUSTER_TRY(named_precision(context.arguments))) {
    return DecoderPrecisionChoice{.precision = *named, .reason = {}};
  }
  // Of what does not generate that is to be said, and nothing of its precision.
  MUSTER_TRY(read_decoder_spec(place.source));
  DecoderPrecisionQuestion question{.source = place.source,
                                    .device = place.device,
                                    .memory_bytes = place.memory_bytes,
                                    .build = std::string(build_name()),
                                    .cache_folder = {}};
  // Replies need no such folder: without one the next run measures again.
  if (const auto folder = find_cache_folder(context.config)) question.cache_folder = folder->path;
  const DecoderProbeOptions probing{.device = place.device,
                                    .worker_program = place.worker_program,
                                    .torch_root = place.torch_root,
                                    .build = question.build};
  return settle_decoder_precision(
      question,
      [&](const ProbeDecoder& probe) {
        return probe_decoder(probing, probe, context.clock, [&while_measuring] {
          if (while_measuring) while_measuring();
          return is_interrupted();
        });
      },
      on_notice);
}

Result<int> ended_before_reply(const CommandContext& context, const Error& error) {
  if (!is_interrupted() || error.kind != ErrorKind::Cancelled) return error;
  say(Tone::Notice, "stopped while the precision was measured; nothing is kept", context.color);
  return 128 + interrupt_signal();
}

std::string precision_sentence(const DecoderPrecisionChoice& choice) {
  if (choice.reason.empty()) return {};
  return fmt::format("precision {}: {}", decoder_precision_name(choice.precision), choice.reason);
}

}  // namespace muster

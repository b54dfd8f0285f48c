#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "jobs/decoder_trial.h"
#include "spec/device.h"

namespace muster {

/// What --precision says; nullopt: auto, which is also where it says nothing.
///
/// Errors: InvalidArgument.
Result<std::optional<DecoderPrecision>> named_precision(const Arguments& arguments);

/// Whether the device computes a decoder in the precision that is named, keeps keys and values as
/// the setting kv_cache_dtype says, and guesses ahead as num_speculative_tokens says.
///
/// Errors: Unsupported, naming the device and what it has.
Status check_decoder_numbers(std::optional<DecoderPrecision> named, const Config& config,
                             const Device& device);

/// What is asked of a measurement where --precision names nothing.
struct PrecisionPlace {
  std::filesystem::path source;
  Device device;                              // of several, the one with the most cores
  std::optional<std::uint64_t> memory_bytes;  // that a worker may take there; nullopt: not known
  std::filesystem::path worker_program;
  std::filesystem::path torch_root;
};

/// The precision that --precision names, else what settle_decoder_precision finds
/// (jobs/decoder_precision.h), measured in a worker where no earlier run has kept it.
///
/// while_measuring: called when that begins and several times a second until it ends; may be empty.
/// Errors: InvalidArgument; those of read_decoder_spec for a model that does not generate;
/// Cancelled after a signal that is caught: callers catch them before.
Result<DecoderPrecisionChoice> chosen_precision(
    const CommandContext& context, const PrecisionPlace& place,
    const std::function<void(const std::string&)>& on_notice,
    const std::function<void()>& while_measuring = {});

/// Of an error before the first reply of generate or chat: where a signal was what ended it, says
/// that nothing is kept, and gives its exit code; else the error.
Result<int> ended_before_reply(const CommandContext& context, const Error& error);

/// "precision own: measured: …"; empty where there is no reason to tell.
std::string precision_sentence(const DecoderPrecisionChoice& choice);

}  // namespace muster

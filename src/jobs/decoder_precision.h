#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "jobs/decoder_trial.h"
#include "spec/device.h"
#include "wire/generation_messages.h"

namespace muster {

/// What the precision of a decoder depends on where nobody names one, and where measurements are
/// kept.
struct DecoderPrecisionQuestion {
  std::filesystem::path source;  // a GGUF file or a folder
  Device device;                 // of several that compute it, the one with the most cores
  std::optional<std::uint64_t> memory_bytes;  // that a worker may take there; nullopt: not known
  std::string build;                          // of this program and its worker
  std::filesystem::path cache_folder;         // empty: nothing is kept
  /// Asked once a measurement is done: whether other work took the device's cores meanwhile. Such a
  /// verdict holds for this time alone. Empty: nothing did.
  std::function<bool()> is_disturbed = {};
};

/// What settle_decoder_precision answers without a measurement; nullopt: it would measure.
///
/// Cost: reads the headers of the files and 1.3 MB of each.
std::optional<DecoderPrecisionChoice> known_decoder_precision(
    const DecoderPrecisionQuestion& question);

/// Measures a decoder on the question's device; blocks until the answer.
using MeasureDecoder = std::function<Result<DecoderVerdict>(const ProbeDecoder&)>;

/// Which precision a decoder is computed in where nobody names one. On a CPU: the one that an
/// earlier measurement on such a processor chose, else that of a measurement made now over parts of
/// the shipped texts (jobs/precision_choice.h), which is kept if it has all precisions and nothing
/// disturbed it. On a GPU bf16, since a file's own bits are multiplied on CPUs only. Where nothing
/// can be measured, the file's own bits, or whatever else is the smallest that there is, and why.
///
/// One that is not done in time (DeadlineExceeded) is kept as such and not tried again, so that no
/// later start waits for it.
///
/// Errors: Cancelled. A measurement that fails is a reason, and no error: why a model cannot be
/// computed is told when it is loaded. Cost: reads the headers of the files and 1.3 MB of each; to
/// measure, also the tokenizer and all weights, once a precision.
Result<DecoderPrecisionChoice> settle_decoder_precision(
    const DecoderPrecisionQuestion& question, const MeasureDecoder& measure,
    const std::function<void(const std::string&)>& on_notice);

}  // namespace muster

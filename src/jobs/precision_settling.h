#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "coordinator/fleet.h"
#include "jobs/model_opening.h"
#include "jobs/precision_choice.h"
#include "wire/messages.h"

namespace muster {

/// What the precision of a model depends on, and where measurements are kept.
struct PrecisionQuestion {
  std::optional<Precision> asked;  // nullopt: auto
  std::string processor;           // the device's model name
  std::string engine_class;
  std::filesystem::path cache_folder;
};

/// Measures every precision on a device, that of the question unless its worker ends; blocks until
/// the answer.
using MeasurePrecisions = std::function<Result<MeasuredPrecisions>(const Probe&)>;

/// The precision that is asked for, else the one that an earlier measurement of this model on this
/// processor chose, else that of a measurement made now, which is kept for the device that made it.
///
/// Errors: those of `measure`.
Result<PrecisionChoice> settle_precision(const PrecisionQuestion& question, OpenedModel& model,
                                         const MeasurePrecisions& measure,
                                         const std::function<void(const std::string&)>& on_notice);

}  // namespace muster

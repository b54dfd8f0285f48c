#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "coordinator/fleet.h"
#include "jobs/embed.h"
#include "jobs/model_opening.h"

namespace muster {

/// The one model of a job, as its fleet knows it.
inline constexpr ModelId kSessionModel = 1;

/// A model on its way onto all devices: what one run of `embed` or one query needs to know.
struct EmbeddingSession {
  OpenedModel model;
  Precision precision = Precision::Fp32;
  std::string precision_reason;
  double measuring_seconds = 0;  // 0: nothing was measured
  std::string equality_class;
  std::unique_ptr<Fleet> fleet;  // greeted, loading
};

/// What a job's options say of its model.
ModelChoice model_choice(const EmbedOptions& options);

/// Finds and reads the model, starts a worker for each device, settles the precision (measuring it
/// once for this model and processor) and tells the workers to load.
///
/// on_phase: hears what is done from now on ("starting workers"); may be empty.
/// Errors: those of `find_and_read`, `open_texts` and `Fleet`; Cancelled.
Result<EmbeddingSession> open_session(const EmbedOptions& options, FleetEvents events,
                                      const Clock& clock, const std::function<bool()>& cancelled,
                                      const std::function<void(const std::string&)>& on_phase = {});

}  // namespace muster

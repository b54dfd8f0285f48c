#pragma once

#include <string>

#include "base/result.h"
#include "planner/plan/plan.h"
#include "spec/machine.h"
#include "spec/model_weights.h"

namespace muster {

/// The device map that accelerate 1.15 makes of a model on a machine, as a JSON object: its blocks
/// as the no-split class, each device's `max_memory` or else its free bytes as the budget, the host
/// last. A margin is not kept: accelerate keeps none but its own.
///
/// Errors: InvalidArgument (a strategy that accelerate does not have, a custom map, a device that
/// the machine does not have), Unsupported (quantised weights, whose elements its sizes cannot
/// say).
Result<std::string> accelerate_map_of(const ModelDescription& model, const Machine& machine,
                                      const PlanRequest& request);

}  // namespace muster

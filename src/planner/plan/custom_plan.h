#pragma once

#include "base/result.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_state.h"

namespace muster {

/// The plan that `PlanRequest::custom_map` describes: module names to devices, the longest name
/// that covers a unit counts ("" covers all), as in transformers' `hf_device_map`.
///
/// A plan whose devices are too small has no copy. Errors: InvalidArgument for a module that the
/// model does not have (with the nearest), a unit that nothing covers, a name inside a unit that
/// cuts it, and a device that the machine does not have.
Result<Plan> plan_custom(const PlanState& state);

}  // namespace muster

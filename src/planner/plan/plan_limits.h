#pragma once

#include "planner/plan/plan.h"
#include "planner/plan/plan_state.h"

namespace muster {

/// Fills `batch_max` and `context_max`: the largest of each with which the same cuts still fit,
/// the other as it is. A context never goes beyond what the model was made for. Neither is filled
/// in where a map gives a device two stages.
void add_limits(const PlanState& state, Plan& plan);

}  // namespace muster

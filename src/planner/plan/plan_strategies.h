#pragma once

#include "base/result.h"
#include "planner/plan/plan_state.h"

namespace muster {

/// The copies that the request's strategy makes; none where the model does not fit.
///
/// Errors: those of `make_plan`.
Result<Plan> plan_by_strategy(const PlanState& state);

}  // namespace muster

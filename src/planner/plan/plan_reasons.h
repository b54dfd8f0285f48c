#pragma once

#include "planner/plan/plan.h"
#include "planner/plan/plan_state.h"

namespace muster {

/// Fills the sentences of a plan: why it is as it is, stage by stage too; what is missing where
/// nothing fits; and what the next better plan would take. Bytes found by search are exact to 1 MB.
///
/// Cost: some tens of placements of one copy.
void add_reasons(const PlanState& state, Plan& plan);

}  // namespace muster

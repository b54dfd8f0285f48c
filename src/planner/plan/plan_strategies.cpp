// The strategies with accelerate's names make one copy over the devices in the machine's order, and
// spill to the host and to disk only after all devices together were too small. Replicas never
// spill: a device that cannot hold the whole model is left out. A model that does not fit is a plan
// without copies, not an Error, so that the reasons can still be worked out.

#include "planner/plan/plan_strategies.h"

#include <utility>

#include "planner/plan/auto_plan.h"
#include "planner/plan/copy_placement.h"
#include "planner/plan/custom_plan.h"

namespace muster {
namespace {

// One copy over all devices, in the machine's order, on the host where nothing else fits.
Result<Plan> plan_one_copy(const PlanState& state, CopyGoal goal) {
  Plan plan = state.empty_plan();
  const auto slots = state.single_slots();
  const auto placer = MUSTER_TRY(state.placer(1, static_cast<std::uint32_t>(slots.size())));
  if (auto copy = placer.place(slots, goal)) {
    plan.copies.push_back(*std::move(copy));
  } else if (auto spilled = placer.place_with_offload(slots, goal, state.budgets())) {
    plan.copies.push_back(*std::move(spilled));
  }
  return plan;
}

Result<Plan> plan_replicas(const PlanState& state) {
  const auto placer = MUSTER_TRY(state.placer(1, 1));
  Plan plan = state.empty_plan();
  for (const auto& slot : state.single_slots()) {
    if (auto copy = placer.place({&slot, 1}, CopyGoal::Sequential)) {
      plan.copies.push_back(*std::move(copy));
    }
  }
  return plan;
}

}  // namespace

Result<Plan> plan_by_strategy(const PlanState& state) {
  switch (state.request().strategy) {
    case PlanStrategy::Auto:
      return plan_auto(state);
    case PlanStrategy::Balanced:
      return plan_one_copy(state, CopyGoal::Balanced);
    case PlanStrategy::BalancedLow0:
      return plan_one_copy(state, CopyGoal::BalancedLow0);
    case PlanStrategy::Sequential:
      return plan_one_copy(state, CopyGoal::Sequential);
    case PlanStrategy::Custom:
      return plan_custom(state);
    case PlanStrategy::Replicate:
      return plan_replicas(state);
  }
  return Error{ErrorKind::Internal, "an unknown strategy"};
}

}  // namespace muster

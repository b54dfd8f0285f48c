#pragma once

#include "base/result.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_state.h"

namespace muster {

/// The best of all legal plans for the request's objective: for every legal degree of tensor
/// parallelism and every number of copies the groups allow, each copy cut by the exact algorithms
/// of planner/chain.h.
///
/// Ties go to the plan with fewer devices, then to the smaller tensor parallelism. Where the speed
/// of a device is not known, more copies count as more throughput and a larger tensor parallelism
/// as less latency. Host memory and disk are used only when no such plan exists.
///
/// Errors: InvalidArgument for a degree asked for that is not legal, naming those that are.
Result<Plan> plan_auto(const PlanState& state);

}  // namespace muster

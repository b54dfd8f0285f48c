#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan/copy_placement.h"
#include "planner/plan/plan.h"

namespace muster {

/// What a plan is worth, known before its copies are written out.
struct PlanCandidate {
  std::uint32_t tensor_parallel = 1;
  std::uint32_t copy_count = 0;
  std::uint32_t device_count = 0;
  double batches_per_second = 0.0;  // over all copies; without times: the number of copies
  double latency_seconds = 0.0;     // of the slowest copy; without times: -tensor_parallel
};

/// The cuts worth comparing: what a pipeline's pace and a step's way through it make of them is
/// known once they are made.
std::vector<CopyGoal> goals_of(PlanObjective objective);

/// True when `a` serves the objective better than `b`.
bool is_better_plan(PlanObjective objective, const PlanCandidate& a, const PlanCandidate& b);

}  // namespace muster

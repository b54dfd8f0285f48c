// What each objective looks at first, and what decides between equals.

#include "planner/plan/plan_candidate.h"

#include <array>

namespace muster {

std::vector<CopyGoal> goals_of(PlanObjective objective) {
  switch (objective) {
    case PlanObjective::Throughput:
      return {CopyGoal::Slowest, CopyGoal::Total, CopyGoal::FewestStages};
    case PlanObjective::Latency:
      return {CopyGoal::Total, CopyGoal::FewestStages};
    case PlanObjective::FewestDevices:
      return {CopyGoal::FewestStages};
  }
  return {};
}

bool is_better_plan(PlanObjective objective, const PlanCandidate& a, const PlanCandidate& b) {
  const auto rank = [objective](const PlanCandidate& c) {
    const auto devices = static_cast<double>(c.device_count);
    const auto degree = static_cast<double>(c.tensor_parallel);
    switch (objective) {
      case PlanObjective::Throughput:
        return std::array{-c.batches_per_second, devices, degree, c.latency_seconds};
      case PlanObjective::Latency:
        return std::array{c.latency_seconds, -c.batches_per_second, devices, degree};
      case PlanObjective::FewestDevices:
        return std::array{devices, degree, -c.batches_per_second, c.latency_seconds};
    }
    return std::array<double, 4>{};
  };
  return rank(a) < rank(b);
}

}  // namespace muster

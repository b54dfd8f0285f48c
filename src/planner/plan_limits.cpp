#include "planner/plan_limits.h"

#include <algorithm>

#include "planner/plan_search.h"

namespace muster {
namespace {

constexpr std::uint32_t kContextMax = 10'000'000;  // where the model states no length

bool same_cuts_fit(const PlanState& state, const Plan& plan, const Workload& workload) {
  for (const auto& copy : plan.copies) {
    for (const auto& stage : copy.stages) {
      if (stage.place == PlanPlace::Disk) continue;
      const auto memory = stage_memory(state.model(), workload,
                                       {.first_unit = stage.first_unit,
                                        .last_unit = stage.last_unit,
                                        .tensor_parallel = plan.tensor_parallel,
                                        .is_gpu = stage.memory.context > 0});
      if (!memory || memory->total() > stage.budget_bytes) return false;
    }
  }
  return true;
}

}  // namespace

void add_limits(const PlanState& state, Plan& plan) {
  plan.batch_max = largest_that_fits(1, kPlanBatchMax, [&](std::uint32_t batch) {
    auto workload = plan.workload;
    workload.batch = batch;
    return same_cuts_fit(state, plan, workload);
  });
  const auto length_max = state.model().shape.length_max;
  const auto most = length_max > 0 ? length_max : kContextMax;
  plan.context_max =
      largest_that_fits(1, std::max(most, plan.workload.context), [&](std::uint32_t context) {
        auto workload = plan.workload;
        workload.context = context;
        return same_cuts_fit(state, plan, workload);
      });
}

}  // namespace muster

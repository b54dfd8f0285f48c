// The largest batch and context are found by halving, on the premise that memory grows with either.
// The cuts stay as they are: the answer is what this plan can bear, not what another plan could.
// Stages that differ in their devices alone are checked once, so a thousand equal copies cost as
// much as one.

#include "planner/plan/plan_limits.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/plan/plan_search.h"

namespace muster {
namespace {

constexpr std::uint32_t kContextMax = 10'000'000;  // where the model states no length

// The stages of a plan that differ in more than their devices.
std::vector<const PlannedStage*> kinds_of_stages(const Plan& plan) {
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, PlanPlace>> seen;
  std::vector<const PlannedStage*> kinds;
  for (const auto& copy : plan.copies) {
    for (const auto& stage : copy.stages) {
      if (stage.place == PlanPlace::Disk) continue;
      if (seen.emplace(stage.first_unit, stage.last_unit, stage.budget_bytes, stage.place).second)
        kinds.push_back(&stage);
    }
  }
  return kinds;
}

// Whether a device holds two stages, as only a custom map can say: stages by themselves then tell
// too little.
bool has_shared_device(const Plan& plan) {
  for (const auto& copy : plan.copies) {
    std::set<std::pair<PlanPlace, std::uint32_t>> seen;
    for (const auto& stage : copy.stages) {
      if (!seen.emplace(stage.place, stage.devices.empty() ? 0 : stage.devices.front()).second)
        return true;
    }
  }
  return false;
}

bool same_cuts_fit(const PlanState& state, const Plan& plan,
                   const std::vector<const PlannedStage*>& stages, const Workload& workload) {
  for (const auto* stage : stages) {
    auto share = state.share(plan.tensor_parallel);
    share.first_unit = stage->first_unit;
    share.last_unit = stage->last_unit;
    auto memory = stage_memory(state.model(), workload, share);
    if (!memory) return false;
    // What stands on the host is computed on the devices all the same: it is no stage of a CPU.
    if (stage->place != PlanPlace::Device) memory->workspace = memory->context = 0;
    if (memory->total() > stage->budget_bytes) return false;
  }
  return true;
}

}  // namespace

void add_limits(const PlanState& state, Plan& plan) {
  if (has_shared_device(plan)) return;
  const auto stages = kinds_of_stages(plan);
  plan.batch_max = largest_that_fits(plan.workload.batch, kPlanBatchMax, [&](std::uint32_t batch) {
    auto workload = plan.workload;
    workload.batch = batch;
    return same_cuts_fit(state, plan, stages, workload);
  });
  const auto length_max = state.model().shape.length_max;
  const auto most = length_max > 0 ? length_max : kContextMax;
  plan.context_max = largest_that_fits(plan.workload.context, std::max(most, plan.workload.context),
                                       [&](std::uint32_t context) {
                                         auto workload = plan.workload;
                                         workload.context = context;
                                         return same_cuts_fit(state, plan, stages, workload);
                                       });
}

}  // namespace muster

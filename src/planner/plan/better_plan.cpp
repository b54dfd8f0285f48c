// The next better plan is found by giving every device more memory and planning anew: the least
// extra that changes the answer is its price. Only a change of kind counts, which is less off the
// devices, or other copies or cuts with at least 1 % of gain; a few layers more on a device are no
// news. Each probe is a whole planning run, so large machines are not asked.

#include "planner/plan/better_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "planner/plan/plan_search.h"
#include "planner/plan/plan_strategies.h"

namespace muster {
namespace {

constexpr std::size_t kDevicesMax = 64;
constexpr double kNoticeable = 1.01;  // a gain under 1 % is nobody's reason to buy memory

// What the objective looks at, larger better.
double worth(const Plan& plan) {
  switch (plan.objective) {
    case PlanObjective::Throughput:
      return plan.is_timed ? plan.sequences_per_second : static_cast<double>(plan.copies.size());
    case PlanObjective::Latency:
      return plan.is_timed ? -plan.latency_seconds : 0.0;
    case PlanObjective::FewestDevices:
      return -static_cast<double>(plan.tensor_parallel * plan.pipeline_parallel);
  }
  return 0.0;
}

// The farthest place that a plan needs: all on the devices, in host memory too, on disk too.
PlanPlace farthest_place(const Plan& plan) {
  auto farthest = PlanPlace::Device;
  for (const auto& stage : plan.copies.front().stages) farthest = std::max(farthest, stage.place);
  return farthest;
}

// A few layers more on the devices, or the same copies with other cuts, are the plan that is shown.
bool is_worth_more(const Plan& plan, const Plan& than) {
  const auto a = farthest_place(plan);
  const auto b = farthest_place(than);
  if (a != b) return a < b;
  if (copies_text(plan) == copies_text(than)) return false;
  const auto least = worth(than);
  return least >= 0.0 ? worth(plan) > least * kNoticeable : worth(plan) * kNoticeable > least;
}

std::string gain_text(const Plan& plan, const Plan& than) {
  auto text = copies_text(plan);
  const auto farthest = farthest_place(plan);
  if (farthest != farthest_place(than)) {
    text = (farthest == PlanPlace::Device ? "all on the devices, " : "nothing on disk, ") + text;
  }
  if (!plan.is_timed) return text;
  return text + ", " +
         (plan.objective == PlanObjective::Throughput
              ? rate_text(plan)
              : duration_text(plan.latency_seconds) + " a step");
}

}  // namespace

std::uint64_t off_device_bytes(const Plan& plan) {
  std::uint64_t bytes = 0;
  for (const auto& stage : plan.copies.front().stages) {
    if (stage.place != PlanPlace::Device) bytes += stage.memory.weights;
  }
  return bytes;
}

std::string copies_text(const Plan& plan) {
  const auto count = plan.copies.size();
  const auto text = count == 1 ? std::string("one copy") : fmt::format("{} copies, each", count);
  const auto degree = plan.tensor_parallel;
  const auto depth = plan.pipeline_parallel;
  if (degree == 1 && depth == 1) return text + " whole on one device";
  if (depth == 1) return text + fmt::format(" on {} devices by tensor parallelism", degree);
  if (degree == 1) return text + fmt::format(" cut into {} stages", depth);
  return text +
         fmt::format(" cut into {} stages of {} devices by tensor parallelism", depth, degree);
}

std::string rate_text(const Plan& plan) {
  constexpr double many = 1000.0;
  const auto rate = plan.sequences_per_second;
  return fmt::format("{} {} a second",
                     rate < many ? fmt::format("{:.3g}", rate)
                                 : with_thousands(static_cast<std::uint64_t>(std::llround(rate))),
                     plan.workload.task == PlanTask::Generate ? "tokens" : "sequences");
}

std::string duration_text(double seconds) {
  return seconds < 1.0 ? fmt::format("{:.3g} ms", seconds * 1e3) : fmt::format("{:.3g} s", seconds);
}

std::optional<PlanAlternative> next_better_plan(const PlanState& state, const Plan& plan) {
  const auto whole = state.whole_memory();
  if (plan.strategy == PlanStrategy::Custom || state.single_slots().size() > kDevicesMax || !whole)
    return std::nullopt;
  std::optional<Plan> better;
  const auto extra = least_extra(2 * whole->total(), [&](std::uint64_t bytes) {
    const auto larger = state.with_extra(bytes);
    auto candidate = plan_by_strategy(larger);
    if (!candidate || candidate->copies.empty()) return false;
    larger.add_times(*candidate);
    if (!is_worth_more(*candidate, plan)) return false;
    better = *std::move(candidate);
    return true;
  });
  if (extra) {
    return PlanAlternative{.what = gain_text(*better, plan),
                           .price = human_bytes(*extra) + " more on each device"};
  }
  const bool is_whole = plan.tensor_parallel == 1 && plan.pipeline_parallel == 1;
  if (plan.objective != PlanObjective::Throughput || !is_whole) return std::nullopt;
  return PlanAlternative{
      .what = fmt::format("{} copies instead of {}", plan.copies.size() + 1, plan.copies.size()),
      .price = "one more device like these"};
}

}  // namespace muster

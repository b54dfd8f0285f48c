// A search over tensor degree and number of copies; how each copy is cut is left to the exact chain
// algorithms. Three things keep it short. Equal slots are searched once and the answer is copied.
// Numbers of copies are tried only where the share of a copy changes, about 2 sqrt(slots) of them.
// With equal slots, a number of copies is skipped when even a perfect cut could not reach the best
// so far. Candidates are compared by numbers alone, and only the winner of a degree is written out.

#include "planner/plan/auto_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "planner/plan/copy_placement.h"
#include "planner/plan/plan_candidate.h"

namespace muster {
namespace {

// The copies of one degree of tensor parallelism: how slots are dealt to them, and what each gives.
class CopySearch {
 public:
  CopySearch(const PlanState& state, std::uint32_t tensor_parallel)
      : state_(state),
        tensor_parallel_(tensor_parallel),
        slots_(state.group_slots(tensor_parallel)) {
    is_uniform_ = std::all_of(slots_.begin(), slots_.end(), [&](const auto& slot) {
      return slot.device_class == slots_.front().device_class &&
             slot.budget == slots_.front().budget;
    });
  }

  std::optional<PlanCandidate> best() {
    std::optional<PlanCandidate> best;
    if (slots_.empty()) return best;
    for (const auto copy_count : copy_counts()) {
      if (best && is_hopeless(copy_count, *best)) continue;
      const auto candidate = evaluate(copy_count);
      if (!candidate) continue;
      if (!best || is_better_plan(state_.request().objective, *candidate, *best)) best = candidate;
    }
    return best;
  }

  Plan write_out(const PlanCandidate& candidate) {
    Plan plan = state_.empty_plan();
    plan.tensor_parallel = tensor_parallel_;
    for (const auto& slots : deal(candidate.copy_count)) {
      auto copy = *place(slots);
      for (auto& stage : copy.stages) {
        // Memoised for slots of the same kind; here are the devices that are really meant.
        stage.devices = slots[stage.devices.front()].devices;
      }
      plan.copies.push_back(std::move(copy));
    }
    return plan;
  }

 private:
  using Slots = std::vector<StageSlot>;
  using Key = std::vector<std::pair<std::uint32_t, std::uint64_t>>;

  // Whether so few copies cannot come up to `best`, however they are cut.
  bool is_hopeless(std::uint32_t copy_count, const PlanCandidate& best) const {
    if (!is_uniform_ || state_.request().objective != PlanObjective::Throughput) return false;
    const auto least = state_.least_batch_seconds(tensor_parallel_, share_size(copy_count),
                                                  slots_.front().device_class);
    return least > 0.0 && copy_count / least < best.batches_per_second;
  }

  // From many to few, one for each size of a copy's share.
  std::vector<std::uint32_t> copy_counts() const {
    const auto& request = state_.request();
    const auto slot_count = static_cast<std::uint32_t>(slots_.size());
    if (request.data_parallel) {
      return *request.data_parallel <= slot_count ? std::vector{*request.data_parallel}
                                                  : std::vector<std::uint32_t>{};
    }
    if (request.objective == PlanObjective::FewestDevices) return {1};
    // More slots than units are of no use to a copy.
    const auto unit_count = static_cast<std::uint32_t>(state_.model().units.size());
    std::vector<std::uint32_t> counts;
    for (std::uint32_t share = 1; share <= std::min(slot_count, unit_count); ++share) {
      const auto count = slot_count / share;
      if (counts.empty() || counts.back() != count) counts.push_back(count);
    }
    return counts;
  }

  std::size_t share_size(std::uint32_t copy_count) const {
    const auto share = std::min(slots_.size() / copy_count, state_.model().units.size());
    const auto asked = state_.request().pipeline_parallel;
    return asked ? std::min<std::size_t>(share, *asked) : share;
  }

  Slots first_share(std::uint32_t copy_count) const {
    return {slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(share_size(copy_count))};
  }

  // Equal slots go in runs, so that a copy's devices are neighbours; different ones in turn, so
  // that the copies are alike.
  std::vector<Slots> deal(std::uint32_t copy_count) const {
    std::vector<Slots> dealt(copy_count);
    const auto share = share_size(copy_count);
    if (is_uniform_) {
      for (std::size_t i = 0; i < copy_count; ++i) {
        const auto begin = slots_.begin() + static_cast<std::ptrdiff_t>(i * share);
        dealt[i].assign(begin, begin + static_cast<std::ptrdiff_t>(share));
      }
      return dealt;
    }
    auto sorted = slots_;
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return a.budget.usable_bytes > b.budget.usable_bytes;
    });
    const auto dealt_count = state_.request().pipeline_parallel
                                 ? std::min(sorted.size(), share * copy_count)
                                 : sorted.size();
    for (std::size_t i = 0; i < dealt_count; ++i) {
      const bool is_back = (i / copy_count) % 2 == 1;
      const auto turn = i % copy_count;
      dealt[is_back ? copy_count - 1 - turn : turn].push_back(std::move(sorted[i]));
    }
    return dealt;
  }

  // The best copy over `slots`, its stages' devices replaced by the index of their slot.
  const std::optional<PlannedCopy>& place(const Slots& slots) {
    Key key;
    for (const auto& slot : slots) key.emplace_back(slot.device_class, slot.budget.usable_bytes);
    const auto found = placed_.find(key);
    if (found != placed_.end()) return found->second;
    auto numbered = slots;
    for (std::uint32_t i = 0; i < numbered.size(); ++i) numbered[i].devices = {i};
    const auto placer = state_.placer(tensor_parallel_, static_cast<std::uint32_t>(slots.size()));
    MUSTER_CHECK(placer.has_value());  // plan_auto has asked for it
    const auto& request = state_.request();
    std::optional<PlannedCopy> best;
    std::optional<PlanCandidate> best_candidate;
    const auto consider = [&](std::optional<PlannedCopy> copy) {
      if (!copy) return;
      if (request.pipeline_parallel && copy->stages.size() != *request.pipeline_parallel) return;
      PlanCandidate candidate;
      add(candidate, *copy, slots, 1);
      if (best_candidate && !is_better_plan(request.objective, candidate, *best_candidate)) return;
      best_candidate = candidate;
      best = std::move(copy);
    };
    if (!request.stage_layers.empty()) {
      consider(placer->place_layers(numbered, request.stage_layers));
      return placed_.emplace(std::move(key), std::move(best)).first->second;
    }
    for (const auto goal : goals_of(request.objective)) {
      if (goal != CopyGoal::Slowest && is_uniform_ && few_) {
        consider(few_);  // equal slots: what a smaller share has found holds for a larger one
        continue;
      }
      const auto copy = placer->place(numbered, goal);
      if (!copy) break;  // whether it fits is the same for every goal
      consider(copy);
      if (goal == CopyGoal::Slowest) continue;
      const auto even = evened_out(numbered, *copy);
      consider(even);
      if (is_uniform_ && goal == CopyGoal::FewestStages) few_ = even;
    }
    return placed_.emplace(std::move(key), std::move(best)).first->second;
  }

  // The slots that `copy` uses, with the least slowest stage.
  std::optional<PlannedCopy> evened_out(const Slots& numbered, const PlannedCopy& copy) const {
    Slots used;
    for (const auto& stage : copy.stages) used.push_back(numbered[stage.devices.front()]);
    const auto placer = state_.placer(tensor_parallel_, static_cast<std::uint32_t>(used.size()));
    MUSTER_CHECK(placer.has_value());
    return placer->place(used, CopyGoal::Slowest);
  }

  std::optional<PlanCandidate> evaluate(std::uint32_t copy_count) {
    PlanCandidate candidate{.tensor_parallel = tensor_parallel_, .copy_count = copy_count};
    if (is_uniform_) {
      const auto slots = first_share(copy_count);
      const auto& copy = place(slots);
      if (!copy) return std::nullopt;
      add(candidate, *copy, slots, copy_count);
      return candidate;
    }
    for (const auto& slots : deal(copy_count)) {
      const auto& copy = place(slots);
      if (!copy) return std::nullopt;
      add(candidate, *copy, slots, 1);
    }
    return candidate;
  }

  // `count` copies like `copy`, whose devices are indices into `slots`.
  void add(PlanCandidate& candidate, PlannedCopy copy, const Slots& slots,
           std::uint32_t count) const {
    candidate.device_count +=
        count * tensor_parallel_ * static_cast<std::uint32_t>(copy.stages.size());
    for (auto& stage : copy.stages) stage.devices = slots[stage.devices.front()].devices;
    if (const auto times = state_.time(copy, tensor_parallel_)) {
      candidate.batches_per_second += count / times->batch_seconds;
      candidate.latency_seconds = std::max(candidate.latency_seconds, latency_of(*times));
    } else {
      candidate.batches_per_second += count;
      candidate.latency_seconds = -static_cast<double>(tensor_parallel_);
    }
  }

  // A generated token waits for the parts of the batch before it.
  double latency_of(const CopyTimes& times) const {
    const bool waits = state_.workload().task == PlanTask::Generate;
    return waits ? std::max(times.batch_seconds, times.latency_seconds) : times.latency_seconds;
  }

  const PlanState& state_;
  const std::uint32_t tensor_parallel_;
  const Slots slots_;
  bool is_uniform_ = true;
  std::map<Key, std::optional<PlannedCopy>> placed_;
  std::optional<PlannedCopy> few_;  // is_uniform_: on as few slots as hold it, evenly
};

}  // namespace

namespace {

// Host and disk take what is over of one copy that is cut nowhere in particular.
bool may_spill(const PlanRequest& request) {
  return request.tensor_parallel.value_or(1) == 1 && request.data_parallel.value_or(1) == 1 &&
         !request.pipeline_parallel && request.stage_layers.empty();
}

}  // namespace

Result<Plan> plan_auto(const PlanState& state) {
  std::optional<PlanCandidate> best;
  Plan plan = state.empty_plan();
  for (const auto degree : MUSTER_TRY(state.tensor_degrees())) {
    MUSTER_TRY(state.placer(degree, 1));
    CopySearch search(state, degree);
    const auto candidate = search.best();
    if (!candidate) continue;
    if (best && !is_better_plan(state.request().objective, *candidate, *best)) continue;
    best = candidate;
    plan = search.write_out(*candidate);
  }
  if (best || !may_spill(state.request())) return plan;
  const auto slots = state.single_slots();
  const auto placer = MUSTER_TRY(state.placer(1, static_cast<std::uint32_t>(slots.size())));
  if (auto copy = placer.place_with_offload(slots, CopyGoal::Slowest, state.budgets())) {
    plan.copies.push_back(*std::move(copy));
  }
  return plan;
}

}  // namespace muster

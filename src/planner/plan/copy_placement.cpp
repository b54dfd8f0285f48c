// Turns a copy into a chain problem and back. The planner's goals differ only in what a unit
// "costs": seconds, its share of the device's room, or nothing but the cuts; so one set of exact
// algorithms serves them all. Slots that are equal to the planner become one class, which keeps the
// searches over counts small, and get their devices back afterwards. Fixed memory is taken off the
// capacity once, as each stage has it whatever its units.

#include "planner/plan/copy_placement.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "base/check.h"

namespace muster {
namespace {

// Slots that are the same to a planner share a class of the chain: [slots] -> class.
std::vector<std::uint32_t> chain_classes(std::span<const StageSlot> slots) {
  std::vector<std::uint32_t> classes;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> seen;
  for (const auto& slot : slots) {
    const std::pair key{slot.device_class, slot.budget.usable_bytes};
    const auto found = std::find(seen.begin(), seen.end(), key);
    classes.push_back(static_cast<std::uint32_t>(found - seen.begin()));
    if (found == seen.end()) seen.push_back(key);
  }
  return classes;
}

std::vector<std::uint32_t> class_counts(std::span<const std::uint32_t> classes) {
  std::vector<std::uint32_t> counts;
  for (const auto c : classes) {
    if (c >= counts.size()) counts.resize(c + 1, 0);
    ++counts[c];
  }
  return counts;
}

// Stages of classes become stages of slots: of each class the first slots in the order given.
void name_slots(ChainPlacement& placement, std::span<const std::uint32_t> classes) {
  std::vector<bool> is_used(classes.size(), false);
  for (auto& stage : placement.stages) {
    std::uint32_t slot = 0;
    while (classes[slot] != stage.device || is_used[slot]) ++slot;
    is_used[slot] = true;
    stage.device = slot;
  }
}

}  // namespace

Result<CopyPlacer> CopyPlacer::create(const ModelDescription& model, const Workload& workload,
                                      const UnitTimes& times, const StageShare& share) {
  CopyPlacer placer;
  placer.model_ = &model;
  placer.workload_ = workload;
  placer.times_ = &times;
  placer.share_ = share;
  placer.units_ =
      MUSTER_TRY(unit_memory(model, workload, share.tensor_parallel, share.is_gpu, share.lanes));
  placer.fixed_ = fixed_memory(workload, share.is_gpu);
  placer.tail_extra_ =
      MUSTER_TRY(tied_copy_bytes(model, workload, share.tensor_parallel, share.is_gpu));
  return placer;
}

std::uint64_t CopyPlacer::bytes_of(std::uint32_t first, std::uint32_t last) const {
  std::uint64_t kept = fixed_.total();
  std::uint64_t peak = 0;
  for (auto i = first; i < last; ++i) {
    const auto& unit = units_[i];
    kept += unit.weights + unit.kv_cache + unit.states + unit.kept;
    peak = std::max(peak, unit.peak);
  }
  const bool has_tail_alone = first > 0 && last == unit_count();
  return kept + peak + (has_tail_alone ? tail_extra_ : 0);
}

PlannedStage CopyPlacer::cut(const StageSlot& slot, std::uint32_t first, std::uint32_t last) const {
  PlannedStage stage;
  stage.devices = slot.devices;
  stage.first_unit = first;
  stage.last_unit = last;
  stage.budget_bytes = slot.budget.usable_bytes;
  stage.margin_bytes = slot.budget.margin_bytes;
  return stage;
}

PlannedStage CopyPlacer::stage_on(const StageSlot& slot, std::uint32_t first,
                                  std::uint32_t last) const {
  auto stage = cut(slot, first, last);
  stage.memory = memory_of(first, last);
  return stage;
}

MemoryParts CopyPlacer::memory_of(std::uint32_t first, std::uint32_t last) const {
  auto share = share_;
  share.first_unit = first;
  share.last_unit = last;
  const auto memory = stage_memory(*model_, workload_, share);
  MUSTER_CHECK(memory.has_value());  // create() has asked the same of every unit
  return *memory;
}

PlannedStage CopyPlacer::stage_off(PlanPlace place, const DeviceBudget& budget, std::uint32_t first,
                                   std::uint32_t last) const {
  auto stage = stage_on({.devices = {}, .device_class = 0, .budget = budget}, first, last);
  stage.place = place;
  stage.memory.workspace = 0;
  stage.memory.context = 0;
  return stage;
}

ChainProblem CopyPlacer::problem(std::span<const StageSlot> slots,
                                 std::span<const std::uint32_t> classes, CopyGoal goal,
                                 std::uint32_t unit_count) const {
  ChainProblem problem;
  for (std::uint32_t i = 0; i < unit_count; ++i) {
    const auto& unit = units_[i];
    problem.bytes.push_back(unit.weights + unit.kv_cache + unit.states + unit.kept);
    problem.peak.push_back(unit.peak);
  }
  const auto class_count = class_counts(classes).size();
  problem.capacity.resize(class_count);
  problem.seconds.resize(class_count);
  const bool is_by_bytes =
      goal == CopyGoal::Balanced || goal == CopyGoal::BalancedLow0 || times_->seconds.empty();
  for (std::size_t s = 0; s < slots.size(); ++s) {
    const auto c = classes[s];
    if (!problem.seconds[c].empty()) continue;
    const auto usable = slots[s].budget.usable_bytes;
    problem.capacity[c] = usable > fixed_.total() ? usable - fixed_.total() : 0;
    const auto room = static_cast<double>(std::max<std::uint64_t>(problem.capacity[c], 1));
    for (std::uint32_t i = 0; i < unit_count; ++i) {
      double cost = 0.0;  // FewestStages: only cuts cost
      if (goal != CopyGoal::FewestStages) {
        cost = is_by_bytes ? static_cast<double>(problem.bytes[i]) / room
                           : times_->seconds[slots[s].device_class][i];
      }
      problem.seconds[c].push_back(cost);
    }
  }
  if (is_by_bytes && slots.size() > 1 && unit_count == this->unit_count()) {
    // A copy of the tied embedding, which the last stage holds, counts for its fullness.
    for (std::size_t c = 0; c < class_count; ++c) {
      const auto room = static_cast<double>(std::max<std::uint64_t>(problem.capacity[c], 1));
      problem.seconds[c].back() += static_cast<double>(tail_extra_) / room;
    }
  }
  if (goal == CopyGoal::FewestStages) {
    problem.cut_seconds = 1.0;
  } else if (!is_by_bytes) {
    problem.cut_seconds = times_->cut_seconds;
  }
  problem.tail_extra_bytes = unit_count == this->unit_count() ? tail_extra_ : 0;
  return problem;
}

// Each slot takes all that fits before the next one is looked at. A slot on which not even one unit
// fits is passed over.
std::optional<PlannedCopy> CopyPlacer::fill_in_order(std::span<const StageSlot> slots,
                                                     std::uint32_t unit_count) const {
  PlannedCopy copy;
  std::uint32_t first = 0;
  for (const auto& slot : slots) {
    auto last = first;
    while (last < unit_count && bytes_of(first, last + 1) <= slot.budget.usable_bytes) ++last;
    if (last > first) copy.stages.push_back(cut(slot, first, last));
    first = last;
    if (first == unit_count) return copy;
  }
  return std::nullopt;
}

// The first slot gets as few units as possible: the number rises until the others can hold the
// rest, and they share that rest evenly.
std::optional<PlannedCopy> CopyPlacer::spare_first(std::span<const StageSlot> slots,
                                                   std::uint32_t unit_count) const {
  for (std::uint32_t on_first = 0; on_first < unit_count; ++on_first) {
    if (on_first > 0 && bytes_of(0, on_first) > slots[0].budget.usable_bytes) break;
    // The rest is a chain of its own; `first_unit` moves its stages to where they belong.
    const auto rest = slots.subspan(1);
    const auto classes = chain_classes(rest);
    auto rest_problem = problem(rest, classes, CopyGoal::Balanced, unit_count);
    rest_problem.bytes.erase(rest_problem.bytes.begin(), rest_problem.bytes.begin() + on_first);
    rest_problem.peak.erase(rest_problem.peak.begin(), rest_problem.peak.begin() + on_first);
    for (auto& seconds : rest_problem.seconds)
      seconds.erase(seconds.begin(), seconds.begin() + on_first);
    if (on_first > 0) {  // no stage of the rest has the embedding
      rest_problem.bytes.back() += std::exchange(rest_problem.tail_extra_bytes, 0);
    }
    const auto placement = min_slowest_in_order(rest_problem, classes);
    if (!placement) continue;
    PlannedCopy copy;
    if (on_first > 0) copy.stages.push_back(cut(slots[0], 0, on_first));
    for (const auto& stage : placement->stages) {
      copy.stages.push_back(cut(rest[stage.device], stage.begin + on_first, stage.end + on_first));
    }
    return copy;
  }
  return std::nullopt;
}

std::optional<PlannedCopy> CopyPlacer::place_front(std::span<const StageSlot> slots, CopyGoal goal,
                                                   std::uint32_t unit_count) const {
  if (slots.empty()) return std::nullopt;
  if (goal == CopyGoal::Sequential) return fill_in_order(slots, unit_count);
  if (goal == CopyGoal::BalancedLow0 && slots.size() > 1) return spare_first(slots, unit_count);
  const auto classes = chain_classes(slots);
  const auto counts = class_counts(classes);
  const auto chain = problem(slots, classes, goal, unit_count);
  const bool is_in_order = goal == CopyGoal::Balanced || goal == CopyGoal::BalancedLow0;
  std::optional<ChainPlacement> placement;
  if (is_in_order) {
    placement = min_slowest_in_order(chain, classes);
  } else {
    placement = goal == CopyGoal::Slowest ? min_slowest_any_order(chain, counts)
                                          : min_total_any_order(chain, counts);
    if (placement) name_slots(*placement, classes);
  }
  if (!placement) return std::nullopt;
  PlannedCopy copy;
  for (const auto& stage : placement->stages) {
    copy.stages.push_back(cut(slots[stage.device], stage.begin, stage.end));
  }
  const bool is_timed = !times_->seconds.empty();
  if (goal == CopyGoal::Slowest && is_timed) copy.bound_seconds = placement->bound_seconds;
  return copy;
}

std::optional<PlannedCopy> CopyPlacer::place(std::span<const StageSlot> slots,
                                             CopyGoal goal) const {
  return place_front(slots, goal, unit_count());
}

std::optional<PlannedCopy> CopyPlacer::place_layers(
    std::span<const StageSlot> slots, std::span<const std::uint32_t> stage_layers) const {
  if (slots.size() < stage_layers.size()) return std::nullopt;
  PlannedCopy copy;
  std::uint32_t first = 0;
  for (std::size_t i = 0; i < stage_layers.size(); ++i) {
    auto last = first;
    std::uint32_t layers = 0;
    const bool is_last = i + 1 == stage_layers.size();
    while (last < unit_count()) {
      const bool is_block = model_->units[last].kind == UnitKind::Block;
      if (!is_last && is_block && layers == stage_layers[i]) break;
      layers += is_block ? 1 : 0;
      ++last;
    }
    if (bytes_of(first, last) > slots[i].budget.usable_bytes) return std::nullopt;
    copy.stages.push_back(cut(slots[i], first, last));
    first = last;
  }
  return copy;
}

std::optional<PlannedCopy> CopyPlacer::place_with_offload(std::span<const StageSlot> slots,
                                                          CopyGoal goal,
                                                          const MachineBudgets& budgets) const {
  // The longest front that fits the devices; what fits shrinks with every unit, so halve.
  std::uint32_t fits = 0;
  std::uint32_t fits_not = unit_count();
  PlannedCopy copy;
  while (fits + 1 < fits_not) {
    const auto middle = (fits + fits_not) / 2;
    if (auto front = place_front(slots, goal, middle)) {
      copy = *std::move(front);
      fits = middle;
    } else {
      fits_not = middle;
    }
  }
  copy.bound_seconds = 0.0;  // of the front alone
  auto last = fits;
  while (last < unit_count() &&
         stage_off(PlanPlace::Host, budgets.host, fits, last + 1).memory.total() <=
             budgets.host.usable_bytes) {
    ++last;
  }
  if (last > fits) copy.stages.push_back(stage_off(PlanPlace::Host, budgets.host, fits, last));
  if (last < unit_count()) {
    if (!budgets.has_disk) return std::nullopt;
    copy.stages.push_back(stage_off(PlanPlace::Disk, {}, last, unit_count()));
  }
  return copy;
}

}  // namespace muster

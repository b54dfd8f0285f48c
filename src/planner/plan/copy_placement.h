#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "planner/chain/chain.h"
#include "planner/plan/device_budget.h"
#include "planner/plan/plan.h"

namespace muster {

/// What a cut of one copy is to be good at.
enum class CopyGoal : std::uint8_t {
  Slowest,       // least slowest stage, any order of the slots
  Total,         // least sum of stages and cuts, any order
  FewestStages,  // as few slots as hold it, any order
  Balanced,      // in the order given, the fullest slot as empty as possible in share of its budget
  BalancedLow0,  // the same, and as little as possible on the first slot
  Sequential,    // in the order given, each filled before the next
};

/// A place for one stage: a device, or a tensor-parallel group of equal ones.
struct StageSlot {
  std::vector<std::uint32_t> devices;  // into Machine::devices
  std::uint32_t device_class = 0;      // into Machine::classes
  DeviceBudget budget;                 // the least over the group

  bool operator==(const StageSlot&) const = default;
};

/// Times of a model's units, where they are known.
struct UnitTimes {
  std::vector<std::vector<double>> seconds;  // [classes of the machine][units]; empty: not known
  double cut_seconds = 0.0;
  std::optional<double> host_bytes_per_second;  // at which an offloaded unit's weights are read
};

/// Cuts one copy of a model over slots, by the algorithms of planner/chain.h.
///
/// Threads: immutable after `create`.
class CopyPlacer {
 public:
  /// `share` says all but the units. `model` and `times` must live as long.
  /// Errors: those of `unit_memory`.
  static Result<CopyPlacer> create(const ModelDescription& model, const Workload& workload,
                                   const UnitTimes& times, const StageShare& share);

  /// The best cut over `slots`, or nullopt when the model does not fit them. The stages' memory is
  /// not filled in: a search makes many copies and keeps one.
  std::optional<PlannedCopy> place(std::span<const StageSlot> slots, CopyGoal goal) const;

  /// The cut that gives each slot so many layers, the embedding with the first and the head with
  /// the last; nullopt when a stage does not fit its slot, or there are fewer slots.
  std::optional<PlannedCopy> place_layers(std::span<const StageSlot> slots,
                                          std::span<const std::uint32_t> stage_layers) const;

  /// As much of the front of the model as fits on `slots`, the rest in host memory, then on disk.
  std::optional<PlannedCopy> place_with_offload(std::span<const StageSlot> slots, CopyGoal goal,
                                                const MachineBudgets& budgets) const;

  /// The memory of units [first, last) on one slot.
  MemoryParts memory_of(std::uint32_t first, std::uint32_t last) const;

  /// A stage of units [first, last), with its memory.
  PlannedStage stage_on(const StageSlot& slot, std::uint32_t first, std::uint32_t last) const;
  PlannedStage stage_off(PlanPlace place, const DeviceBudget& budget, std::uint32_t first,
                         std::uint32_t last) const;

  /// Bytes of units [first, last) on one slot, everything counted.
  std::uint64_t bytes_of(std::uint32_t first, std::uint32_t last) const;

  /// The same with other times.
  CopyPlacer with_times(const UnitTimes& times) const {
    auto placer = *this;
    placer.times_ = &times;
    return placer;
  }

  std::uint32_t unit_count() const { return static_cast<std::uint32_t>(units_.size()); }

 private:
  CopyPlacer() = default;

  PlannedStage cut(const StageSlot& slot, std::uint32_t first, std::uint32_t last) const;
  ChainProblem problem(std::span<const StageSlot> slots, std::span<const std::uint32_t> classes,
                       CopyGoal goal, std::uint32_t unit_count) const;
  std::optional<PlannedCopy> place_front(std::span<const StageSlot> slots, CopyGoal goal,
                                         std::uint32_t unit_count) const;
  std::optional<PlannedCopy> fill_in_order(std::span<const StageSlot> slots,
                                           std::uint32_t unit_count) const;
  std::optional<PlannedCopy> spare_first(std::span<const StageSlot> slots,
                                         std::uint32_t unit_count) const;

  const ModelDescription* model_ = nullptr;
  Workload workload_;
  const UnitTimes* times_ = nullptr;
  StageShare share_;
  std::vector<UnitMemory> units_;
  MemoryParts fixed_;
  std::uint64_t tail_extra_ = 0;
};

}  // namespace muster

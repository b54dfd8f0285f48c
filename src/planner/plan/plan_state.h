#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "planner/plan/copy_placement.h"
#include "planner/plan/device_budget.h"
#include "planner/plan/plan.h"

namespace muster {

/// How long a copy takes for its batch.
///
/// Generate: the batch goes through the stages in as many parts, so that all are busy; a token of
/// every sequence takes as many turns of the slowest stage. Train: in `microbatches` parts, with
/// the pipeline's fill and drain. Embed: batches do not wait for each other, so one comes out each
/// turn. Source: Narayanan et al. 2021 (arXiv 2104.04473), section 2.2.1: (m + p - 1) turns a
/// batch.
struct CopyTimes {
  double stage_seconds = 0.0;    // a turn: the slowest stage with its cut
  double batch_seconds = 0.0;    // between the ends of two batches
  double latency_seconds = 0.0;  // of one step of one batch through all stages
};

/// What every step of making one plan looks at. It borrows model, machine and request.
///
/// Threads: not thread-safe, because it remembers the times it has worked out.
class PlanState {
 public:
  /// Errors: those of `machine_budgets` and of the memory model.
  static Result<PlanState> create(const ModelDescription& model, const Machine& machine,
                                  const PlanRequest& request, const Workload& workload);

  const ModelDescription& model() const { return *model_; }
  const Machine& machine() const { return *machine_; }
  const PlanRequest& request() const { return *request_; }
  const Workload& workload() const { return workload_; }
  const MachineBudgets& budgets() const { return budgets_; }

  /// The same with `bytes` more on every device that is in use.
  PlanState with_extra(std::uint64_t bytes) const;
  PlanState with_workload(const Workload& workload) const;

  /// Every device with a budget, one to a slot, in the machine's order; of a machine with GPUs the
  /// GPUs alone.
  std::vector<StageSlot> single_slots() const;

  /// Groups of `tensor_parallel` equal devices within a node, the best linked together, in the
  /// order in which a pipeline should visit them; devices that are left over are in none, MIG
  /// slices in groups of one alone.
  std::vector<StageSlot> group_slots(std::uint32_t tensor_parallel) const;

  /// The degrees that divide the model and that the machine has groups for: 1, and those; or only
  /// the one that was asked for.
  ///
  /// Errors: InvalidArgument where that one is not legal, naming those that are.
  Result<std::vector<std::uint32_t>> tensor_degrees() const;

  /// Cuts by the times of a pipeline of `stage_count` stages. Errors: those of `unit_memory`.
  Result<CopyPlacer> placer(std::uint32_t tensor_parallel, std::uint32_t stage_count) const;

  /// Sequences that go through a pipeline of `stage_count` stages at once.
  std::uint32_t part_size(std::size_t stage_count) const;

  /// All but the units.
  StageShare share(std::uint32_t tensor_parallel) const;

  /// No cut over up to `stage_count` equal slots generates a token of every sequence faster: a turn
  /// of the slowest stage, as often as there are stages, takes at least all units' time. 0 where
  /// that is not known, and for other tasks, whose batches overlap.
  double least_batch_seconds(std::uint32_t tensor_parallel, std::size_t stage_count,
                             std::uint32_t device_class) const;

  /// Gives the stages their times; nullopt where the speed of a place is not known.
  std::optional<CopyTimes> time(PlannedCopy& copy, std::uint32_t tensor_parallel) const;

  /// The first device in use whose speed is not known.
  std::optional<std::string> unknown_speed() const;

  /// The whole model on one device; nullopt where the memory model refuses.
  std::optional<MemoryParts> whole_memory() const;

  std::uint64_t usable_bytes() const;  // of all devices in use
  std::uint64_t largest_usable_bytes() const;

  /// A plan without copies.
  Plan empty_plan() const;

  /// Fills the memory of every stage. Errors: those of `unit_memory`.
  Status add_memory(Plan& plan) const;

  /// Fills what follows from the copies: depth, step, latency and bound.
  void add_times(Plan& plan) const;

 private:
  PlanState() = default;

  // The same address for the same arguments, as long as the workload is the same.
  const UnitTimes& unit_times(std::uint32_t tensor_parallel, std::size_t stage_count) const;
  const std::vector<UnitMemory>* units_of(std::uint32_t tensor_parallel) const;
  UnitTimes measured(std::uint32_t tensor_parallel, const Workload& part) const;
  double slot_speed(const StageSlot& slot) const;

  const ModelDescription* model_ = nullptr;
  const Machine* machine_ = nullptr;
  const PlanRequest* request_ = nullptr;
  Workload workload_;
  MachineBudgets budgets_;
  std::vector<std::uint32_t> devices_;  // in use, in pipeline order
  std::uint32_t lanes_ = 1;
  bool is_gpu_ = true;
  mutable std::map<std::pair<std::uint32_t, std::uint32_t>, UnitTimes>
      times_;  // by tensor parallelism and part
  mutable std::map<std::uint32_t, std::vector<UnitMemory>> units_;  // by tensor parallelism
  mutable std::map<std::uint32_t, CopyPlacer> placers_;             // by tensor parallelism
};

}  // namespace muster

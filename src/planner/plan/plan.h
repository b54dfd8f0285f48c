#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/memory/memory_model.h"
#include "planner/plan/fit_verdict.h"
#include "spec/machine.h"
#include "spec/model_weights.h"
#include "spec/workload.h"

namespace muster {

/// How units are given to devices. The names are accelerate's where the meaning is.
enum class PlanStrategy : std::uint8_t {
  Auto,          // what serves the objective best: the number of copies, and how each is cut
  Balanced,      // one copy over all devices, the fullest as empty as possible
  BalancedLow0,  // the same, with as little as possible on the first device
  Sequential,    // one copy, each device filled before the next
  Custom,        // as `PlanRequest::custom_map` says
  Replicate,     // a whole copy on every device
};

enum class PlanObjective : std::uint8_t {
  Throughput,     // most work a second over all copies
  Latency,        // least time for one sequence's step
  FewestDevices,  // leave as many devices free as possible
};

/// "auto", "balanced", "balanced_low_0", "sequential", "custom", "replicate".
std::string_view plan_strategy_name(PlanStrategy strategy);

/// "throughput", "latency", "fewest-devices".
std::string_view plan_objective_name(PlanObjective objective);

/// What stays free on every device: `bytes` and `share` of its memory.
struct PlanMargin {
  double share = 0.0;  // 0 to 1
  std::uint64_t bytes = 0;
};

struct PlanRequest {
  PlanStrategy strategy = PlanStrategy::Auto;
  PlanObjective objective = PlanObjective::Throughput;
  Workload workload;
  /// At most this much on a device: by name ("cuda:0", "cpu", "disk"). A device of the machine that
  /// is not named keeps its own limit; 0 keeps it out.
  std::vector<std::pair<std::string, std::uint64_t>> max_memory;
  std::optional<PlanMargin> margin;  // none: `default_margin`
  bool may_offload = true;           // to host memory, then disk, where nothing else fits
  std::optional<std::uint32_t> tensor_parallel;  // Auto only: this many and no other
  std::optional<std::uint32_t> pipeline_parallel;
  std::optional<std::uint32_t> data_parallel;
  std::vector<std::uint32_t> stage_layers;  // Auto only: so many layers a stage, not the best cut
  std::vector<std::pair<std::string, std::string>> custom_map;  // module -> device
};

/// Where a stage lives.
enum class PlanPlace : std::uint8_t { Device, Host, Disk };

/// A part of one copy: units [first_unit, last_unit) of the chain on a group of devices.
struct PlannedStage {
  PlanPlace place = PlanPlace::Device;
  std::vector<std::uint32_t> devices;  // into Machine::devices; more than one: tensor parallel
  std::uint32_t first_unit = 0;
  std::uint32_t last_unit = 0;
  MemoryParts memory;                  // on each device of the group
  std::uint64_t budget_bytes = 0;      // the least over the group, margin already taken off
  std::uint64_t margin_bytes = 0;      // kept free besides
  std::string why;                     // why it ends where it ends
  std::optional<double> step_seconds;  // its own work in a step, the cut to the next stage excluded
};

struct PlannedCopy {
  std::vector<PlannedStage> stages;  // in the order of the chain
  double bound_seconds = 0.0;  // no cut over these devices has a faster slowest stage; 0: not known
};

/// No larger batch is looked for.
inline constexpr std::uint32_t kPlanBatchMax = 1'000'000;

/// What another plan would give, and what it would take.
struct PlanAlternative {
  std::string what;   // "one copy per device: 4 copies instead of 2"
  std::string price;  // "3.1 GB more on each device"
};

/// A placement of a model, or why there is none.
struct Plan {
  FitVerdict verdict;
  PlanStrategy strategy = PlanStrategy::Auto;
  PlanObjective objective = PlanObjective::Throughput;
  Workload workload;  // the context as resolved
  /// What may be used, into Machine::devices: its GPUs, of a machine without GPUs its CPU devices.
  std::vector<std::uint32_t> usable_devices;
  std::uint32_t tensor_parallel = 1;
  std::uint32_t pipeline_parallel = 1;
  std::vector<PlannedCopy> copies;    // data parallel
  bool is_timed = false;              // step times are known: every class has its speed
  std::uint32_t part_size = 1;        // sequences of a batch that go through the stages at once
  double step_seconds = 0.0;          // of the slowest stage with its cut, the slowest copy, a part
  double latency_seconds = 0.0;       // of one step through all stages of the slowest copy
  double sequences_per_second = 0.0;  // steps of a sequence: Generate: tokens; over all copies
  double bound_seconds = 0.0;  // no cut of a copy over these devices has a faster slowest stage
  std::optional<std::uint32_t> batch_max;    // largest batch of a copy on the same devices and cuts
  std::optional<std::uint32_t> context_max;  // largest context with this batch
  std::vector<std::string> reasons;          // why this plan: a sentence each
  std::vector<std::string> missing;          // no copies: what would make it fit, in bytes
  std::optional<PlanAlternative> next;

  /// There is a placement, though perhaps with layers in host memory or on disk.
  bool is_placed() const { return !copies.empty(); }
};

/// The margin when none is asked for: what the memory model may be off by, per task.
PlanMargin default_margin(const ModelDescription& model, const Workload& workload);

/// Places `model` on `machine`.
///
/// A model that does not fit is no Error but a Plan with its verdict and reasons; without copies
/// where there is no placement, and then with what is missing. Errors: InvalidArgument (a device in
/// `max_memory` or `custom_map` that the machine does not have, a map that covers a unit twice, in
/// part or not at all, an illegal degree of parallelism with the legal ones, and those of
/// `stage_memory`), Unsupported (a task that the kind of model cannot do). Deterministic: the same
/// inputs give the same plan. Threads: pure.
Result<Plan> make_plan(const ModelDescription& model, const Machine& machine,
                       const PlanRequest& request);

/// What one whole copy takes on one device of `machine`, as `make_plan` counts it: by the kind of
/// the devices, the lanes of a CPU, and the usual context where none is asked for.
///
/// Errors: those of `make_plan`. Threads: pure.
Result<MemoryParts> whole_copy_memory(const ModelDescription& model, const Machine& machine,
                                      const PlanRequest& request);

}  // namespace muster

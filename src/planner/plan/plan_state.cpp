// What one planning run knows about its machine and workload, worked out once and kept. Unit times
// are kept by tensor parallelism and part size, not by stage count, as many stage counts of a
// search lead to the same part. The placers are kept by tensor parallelism alone and lent with the
// times of the question, since memory does not depend on the depth. A state with other bytes or
// another workload is a copy that drops the caches which the change could make wrong.

#include "planner/plan/plan_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "planner/parallel/parallel_degree.h"
#include "planner/parallel/parallel_times.h"
#include "planner/parallel/topology_order.h"
#include "topology/node_topology.h"

namespace muster {
namespace {

// The devices a plan may use: the GPUs where there are any, and of CPU devices all.
std::vector<std::uint32_t> devices_in_use(const Machine& machine, const MachineBudgets& budgets) {
  const bool has_gpu =
      std::any_of(machine.devices.begin(), machine.devices.end(),
                  [](const auto& device) { return device.kind != DeviceKind::Cpu; });
  std::vector<std::uint32_t> devices;
  for (std::uint32_t i = 0; i < machine.devices.size(); ++i) {
    const bool is_kind = !has_gpu || machine.devices[i].kind != DeviceKind::Cpu;
    if (is_kind && budgets.devices[i].usable_bytes > 0) devices.push_back(i);
  }
  return devices;
}

std::vector<DeviceGroup> groups_of(const std::vector<StageSlot>& slots) {
  std::vector<DeviceGroup> groups;
  for (const auto& slot : slots) groups.push_back(slot.devices);
  return groups;
}

std::vector<StageSlot> in_pipeline_order(const Machine& machine, std::vector<StageSlot> slots) {
  std::vector<StageSlot> ordered;
  for (const auto index : pipeline_order(machine, groups_of(slots)))
    ordered.push_back(std::move(slots[index]));
  return ordered;
}

std::optional<double> stage_seconds(const Machine& machine, const UnitTimes& times,
                                    const PlannedStage& stage) {
  if (stage.place == PlanPlace::Disk) return std::nullopt;
  if (stage.place == PlanPlace::Host) {
    if (!times.host_bytes_per_second) return std::nullopt;
    return static_cast<double>(stage.memory.weights) / *times.host_bytes_per_second;
  }
  const auto& seconds = times.seconds[machine.devices[stage.devices.front()].device_class];
  return std::accumulate(seconds.begin() + stage.first_unit, seconds.begin() + stage.last_unit,
                         0.0);
}

// What the worst linked neighbours of a pipeline exchange a second.
std::optional<double> slowest_neighbours(const Machine& machine,
                                         const std::vector<StageSlot>& slots) {
  std::vector<std::uint32_t> order(slots.size());
  std::iota(order.begin(), order.end(), 0U);
  return slowest_hop(machine, groups_of(slots), order);
}

}  // namespace

Result<PlanState> PlanState::create(const ModelDescription& model, const Machine& machine,
                                    const PlanRequest& request, const Workload& workload) {
  PlanState state;
  state.model_ = &model;
  state.machine_ = &machine;
  state.request_ = &request;
  state.workload_ = workload;
  const auto margin = request.margin.value_or(default_margin(model, workload));
  state.budgets_ = MUSTER_TRY(machine_budgets(machine, margin, request));
  state.devices_ = devices_in_use(machine, state.budgets_);
  for (const auto device : state.devices_) {
    const auto& its = machine.devices[device];
    state.is_gpu_ = its.kind != DeviceKind::Cpu;
    state.lanes_ = std::max(state.lanes_, its.core_count);
  }
  MUSTER_TRY(state.placer(1, 1));  // what the memory model refuses, it refuses here
  return state;
}

PlanState PlanState::with_extra(std::uint64_t bytes) const {
  auto state = *this;
  state.times_.clear();
  state.placers_.clear();
  for (const auto device : devices_) state.budgets_.devices[device].usable_bytes += bytes;
  return state;
}

PlanState PlanState::with_workload(const Workload& workload) const {
  auto state = *this;
  state.workload_ = workload;
  state.times_.clear();
  state.placers_.clear();
  state.units_.clear();
  return state;
}

std::vector<StageSlot> PlanState::single_slots() const {
  std::vector<StageSlot> slots;
  for (const auto device : devices_) {
    slots.push_back({.devices = {device},
                     .device_class = machine_->devices[device].device_class,
                     .budget = budgets_.devices[device]});
  }
  return slots;
}

std::vector<StageSlot> PlanState::group_slots(std::uint32_t tensor_parallel) const {
  if (tensor_parallel == 1) return in_pipeline_order(*machine_, single_slots());
  std::vector<StageSlot> slots;
  for (auto& group : tensor_groups(*machine_, devices_, tensor_parallel)) {
    StageSlot slot{.devices = {},
                   .device_class = machine_->devices[group.front()].device_class,
                   .budget = budgets_.devices[group.front()]};
    for (const auto device : group) {
      slot.budget.usable_bytes =
          std::min(slot.budget.usable_bytes, budgets_.devices[device].usable_bytes);
    }
    slot.devices = std::move(group);
    slots.push_back(std::move(slot));
  }
  return in_pipeline_order(*machine_, std::move(slots));
}

Result<std::vector<std::uint32_t>> PlanState::tensor_degrees() const {
  if (const auto asked = request_->tensor_parallel) {
    MUSTER_TRY(check_tensor_degree(model_->shape, *machine_, devices_, *asked));
    return std::vector{*asked};
  }
  // Only our own engine computes 8 bits, and it cuts no layer over devices.
  if (workload_.dtype == "int8") return std::vector<std::uint32_t>{1};
  return possible_tensor_degrees(model_->shape, *machine_, devices_);
}

std::optional<std::string> PlanState::unknown_speed() const {
  for (const auto device : devices_) {
    const auto& its = machine_->classes[machine_->devices[device].device_class];
    if (!its.flops_per_second || !its.memory_bytes_per_second) return its.model;
  }
  return std::nullopt;
}

std::uint32_t PlanState::part_size(std::size_t stage_count) const {
  std::size_t parts = 1;
  if (workload_.task == PlanTask::Generate) parts = std::max<std::size_t>(stage_count, 1);
  if (workload_.task == PlanTask::Train) parts = workload_.training.microbatches;
  return std::max(1U, static_cast<std::uint32_t>((workload_.batch + parts - 1) / parts));
}

const UnitTimes& PlanState::unit_times(std::uint32_t tensor_parallel,
                                       std::size_t stage_count) const {
  const auto part = part_size(stage_count);
  const std::pair key{tensor_parallel, part};
  const auto found = times_.find(key);
  if (found != times_.end()) return found->second;
  auto workload = workload_;
  workload.batch = part;
  return times_[key] = measured(tensor_parallel, workload);
}

const std::vector<UnitMemory>* PlanState::units_of(std::uint32_t tensor_parallel) const {
  auto found = units_.find(tensor_parallel);
  if (found == units_.end()) {
    auto units = unit_memory(*model_, workload_, tensor_parallel, is_gpu_, lanes_);
    if (!units) return nullptr;
    found = units_.emplace(tensor_parallel, *std::move(units)).first;
  }
  return &found->second;
}

UnitTimes PlanState::measured(std::uint32_t tensor_parallel, const Workload& part) const {
  if (devices_.empty() || unknown_speed()) return {};
  const auto* units = units_of(tensor_parallel);
  if (units == nullptr) return {};
  auto memory = *units;
  // A cache is kept by sequence, so a part of the batch has its share of it.
  for (auto& unit : memory) unit.kv_cache = unit.kv_cache / workload_.batch * part.batch;
  const auto step = usual_step(part);
  UnitTimes times;
  times.seconds.resize(machine_->classes.size());
  times.host_bytes_per_second = machine_->host_link_bytes_per_second;
  // The slowest link of each class's groups, so that a class has one time a unit.
  std::map<std::uint32_t, double> group_speed;
  const auto slots = group_slots(tensor_parallel);
  for (const auto& slot : slots) {
    const auto [entry, is_new] =
        group_speed.emplace(slot.device_class, std::numeric_limits<double>::infinity());
    entry->second = std::min(entry->second, slot_speed(slot));
  }
  const auto work = unit_work(*model_, part, memory, step, tensor_parallel);
  for (const auto& [device_class, speed] : group_speed) {
    for (const auto& unit : work) {
      times.seconds[device_class].push_back(
          unit_seconds(unit, machine_->classes[device_class], tensor_parallel, speed).value_or(0));
    }
  }
  if (const auto speed = slowest_neighbours(*machine_, slots)) {
    times.cut_seconds = cut_seconds(*model_, part, step, *speed);
  }
  return times;
}

// The least that two devices of a slot exchange.
double PlanState::slot_speed(const StageSlot& slot) const {
  const auto& node = machine_->nodes[machine_->devices[slot.devices.front()].node];
  std::vector<std::uint32_t> in_node;
  for (const auto device : slot.devices) in_node.push_back(device - node.first_device);
  return group_bytes_per_second(machine_->node_links[node.links], in_node);
}

StageShare PlanState::share(std::uint32_t tensor_parallel) const {
  return {.tensor_parallel = tensor_parallel, .is_gpu = is_gpu_, .lanes = lanes_};
}

std::optional<MemoryParts> PlanState::whole_memory() const {
  auto whole = share(1);
  whole.last_unit = static_cast<std::uint32_t>(model_->units.size());
  const auto memory = stage_memory(*model_, workload_, whole);
  return memory ? std::optional(*memory) : std::nullopt;
}

std::uint64_t PlanState::usable_bytes() const {
  std::uint64_t sum = 0;
  for (const auto device : devices_) sum += budgets_.devices[device].usable_bytes;
  return sum;
}

std::uint64_t PlanState::largest_usable_bytes() const {
  std::uint64_t largest = 0;
  for (const auto device : devices_)
    largest = std::max(largest, budgets_.devices[device].usable_bytes);
  return largest;
}

Result<CopyPlacer> PlanState::placer(std::uint32_t tensor_parallel,
                                     std::uint32_t stage_count) const {
  const auto& times = unit_times(tensor_parallel, stage_count);
  auto found = placers_.find(tensor_parallel);
  if (found == placers_.end()) {
    auto placer = MUSTER_TRY(CopyPlacer::create(*model_, workload_, times, share(tensor_parallel)));
    found = placers_.emplace(tensor_parallel, std::move(placer)).first;
  }
  return found->second.with_times(times);
}

Status PlanState::add_memory(Plan& plan) const {
  if (plan.copies.empty()) return Done{};
  const auto placer = MUSTER_TRY(this->placer(plan.tensor_parallel, 1));
  std::map<std::pair<std::uint32_t, std::uint32_t>, MemoryParts> known;
  for (auto& copy : plan.copies) {
    for (auto& stage : copy.stages) {
      if (stage.place != PlanPlace::Device) continue;
      const std::pair key{stage.first_unit, stage.last_unit};
      auto found = known.find(key);
      if (found == known.end())
        found = known.emplace(key, placer.memory_of(key.first, key.second)).first;
      stage.memory = found->second;
    }
  }
  return Done{};
}

Plan PlanState::empty_plan() const {
  Plan plan;
  plan.strategy = request_->strategy;
  plan.objective = request_->objective;
  plan.workload = workload_;
  plan.usable_devices = devices_;
  return plan;
}

double PlanState::least_batch_seconds(std::uint32_t tensor_parallel, std::size_t stage_count,
                                      std::uint32_t device_class) const {
  const auto& times = unit_times(tensor_parallel, stage_count);
  if (times.seconds.empty() || workload_.task != PlanTask::Generate) return 0.0;
  const auto& seconds = times.seconds[device_class];
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

std::optional<CopyTimes> PlanState::time(PlannedCopy& copy, std::uint32_t tensor_parallel) const {
  const auto& times = unit_times(tensor_parallel, copy.stages.size());
  if (times.seconds.empty()) return std::nullopt;
  CopyTimes sum;
  bool is_known = true;
  for (std::size_t i = 0; i < copy.stages.size(); ++i) {
    auto& stage = copy.stages[i];
    stage.step_seconds = stage_seconds(*machine_, times, stage);
    is_known &= stage.step_seconds.has_value();
    const bool is_last = i + 1 == copy.stages.size();
    const auto seconds = stage.step_seconds.value_or(0.0) + (is_last ? 0.0 : times.cut_seconds);
    sum.stage_seconds = std::max(sum.stage_seconds, seconds);
    sum.latency_seconds += seconds;
  }
  if (!is_known) return std::nullopt;
  const auto stage_count = static_cast<double>(copy.stages.size());
  const auto microbatches = static_cast<double>(workload_.training.microbatches);
  switch (workload_.task) {
    case PlanTask::Embed:
      sum.batch_seconds = sum.stage_seconds;
      break;
    case PlanTask::Generate:
      sum.batch_seconds = stage_count * sum.stage_seconds;
      break;
    case PlanTask::Train:
      sum.batch_seconds = (microbatches + stage_count - 1.0) * sum.stage_seconds;
      break;
  }
  return sum;
}

void PlanState::add_times(Plan& plan) const {
  plan.pipeline_parallel = 0;
  plan.is_timed = !plan.copies.empty();
  for (auto& copy : plan.copies) {
    plan.pipeline_parallel =
        std::max(plan.pipeline_parallel, static_cast<std::uint32_t>(copy.stages.size()));
    const auto times = time(copy, plan.tensor_parallel);
    if (!times) {
      plan.is_timed = false;
      continue;
    }
    plan.step_seconds = std::max(plan.step_seconds, times->stage_seconds);
    plan.latency_seconds = std::max(plan.latency_seconds, times->latency_seconds);
    plan.bound_seconds = std::max(plan.bound_seconds, copy.bound_seconds);
    plan.sequences_per_second += workload_.batch / times->batch_seconds;
  }
  plan.part_size = part_size(plan.pipeline_parallel);
}

}  // namespace muster

// Every device is asked as if it had room without end, since a device that is too small would get
// no copy and so no figures; its real budget is compared afterwards. Hardware to buy is found the
// same way, by planning simulated nodes of one device, of two and so on until one holds the model:
// the advice rests on the very planner that will place it. Types that have no name in a machine's
// notation are skipped.

#include "planner/plan/recommend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "planner/plan/device_budget.h"
#include "topology/machine_text.h"

namespace muster {
namespace {

PlanRequest whole_copies(const PlanRequest& request) {
  auto whole = request;
  whole.strategy = PlanStrategy::Replicate;
  whole.custom_map.clear();
  whole.may_offload = false;
  whole.tensor_parallel.reset();
  whole.pipeline_parallel.reset();
  whole.data_parallel.reset();
  return whole;
}

bool is_preferred(const DeviceAdvice& a, const DeviceAdvice& b) {
  static constexpr double unknown = 1e30;  // slower than all whose speed is known
  const auto rank = [](const DeviceAdvice& advice) {
    return std::tuple(advice.step_seconds.value_or(unknown),
                      advice.usable_bytes - advice.needed_bytes, advice.device);
  };
  return rank(a) < rank(b);
}

// A machine with room enough on each device, so that every device gets a copy and so its figures.
Machine roomy(Machine machine) {
  constexpr std::uint64_t plenty = std::uint64_t{1} << 50;
  for (auto& device : machine.devices) device.free_bytes = plenty;
  return machine;
}

Result<std::vector<DeviceAdvice>> advise_devices(const ModelDescription& model,
                                                 const Machine& machine,
                                                 const PlanRequest& request) {
  auto unlimited = request;
  unlimited.max_memory.clear();
  const auto plan = MUSTER_TRY(make_plan(model, roomy(machine), unlimited));
  const auto budgets = MUSTER_TRY(machine_budgets(
      machine, request.margin.value_or(default_margin(model, request.workload)), request));
  std::vector<DeviceAdvice> devices;
  for (const auto& copy : plan.copies) {
    const auto& stage = copy.stages.front();
    const auto device = stage.devices.front();
    devices.push_back({.device = device,
                       .needed_bytes = stage.memory.total(),
                       .usable_bytes = budgets.devices[device].usable_bytes,
                       .step_seconds = stage.step_seconds});
  }
  return devices;
}

std::optional<HardwareAdvice> fewest_of(const ModelDescription& model, const PlanRequest& request,
                                        const DeviceClass& device_class) {
  auto fewest = request;
  fewest.strategy = PlanStrategy::Auto;
  fewest.objective = PlanObjective::FewestDevices;
  fewest.custom_map.clear();
  fewest.max_memory.clear();
  fewest.may_offload = false;
  constexpr std::uint32_t kNodeMost = 8;  // devices; larger nodes are sold of few types
  for (std::uint32_t count = 1; count <= kNodeMost; ++count) {
    const auto node = parse_machine(fmt::format("sim:{}x{}", count, device_class.model));
    if (!node) return std::nullopt;  // a type that nobody can buy by its name
    const auto plan = make_plan(model, *node, fewest);
    if (!plan || !plan->is_placed()) continue;
    HardwareAdvice advice;
    advice.count = count;
    advice.tensor_parallel = plan->tensor_parallel;
    advice.pipeline_parallel = plan->pipeline_parallel;
    for (const auto& stage : plan->copies.front().stages)
      advice.largest_used_bytes = std::max(advice.largest_used_bytes, stage.memory.total());
    if (plan->is_timed) advice.latency_seconds = plan->latency_seconds;
    return advice;
  }
  return std::nullopt;
}

std::string reason(const Machine& machine, const std::vector<DeviceAdvice>& devices,
                   const std::optional<DeviceAdvice>& chosen) {
  if (!chosen) {
    const auto least = std::min_element(devices.begin(), devices.end(), [](auto& a, auto& b) {
      return a.needed_bytes - std::min(a.needed_bytes, a.usable_bytes) <
             b.needed_bytes - std::min(b.needed_bytes, b.usable_bytes);
    });
    if (least == devices.end()) return "there is no device";
    return fmt::format("no device holds it whole: {} lacks {}; `muster plan` cuts it",
                       machine.devices[least->device].name(),
                       human_bytes(least->needed_bytes - least->usable_bytes));
  }
  const auto fitting = std::count_if(devices.begin(), devices.end(),
                                     [](const auto& advice) { return advice.fits(); });
  return fmt::format("{} of {} devices hold it whole; this one is {}, with {} to spare", fitting,
                     devices.size(),
                     chosen->step_seconds ? "the fastest of them" : "the tightest of them",
                     human_bytes(chosen->usable_bytes - chosen->needed_bytes));
}

}  // namespace

Result<Recommendation> recommend(const ModelDescription& model, const Machine& machine,
                                 const PlanRequest& request, std::span<const DeviceClass> classes) {
  Recommendation recommendation;
  recommendation.devices = MUSTER_TRY(advise_devices(model, machine, whole_copies(request)));
  std::optional<DeviceAdvice> chosen;
  for (const auto& advice : recommendation.devices) {
    if (advice.fits() && (!chosen || is_preferred(advice, *chosen))) chosen = advice;
  }
  if (chosen) recommendation.device = chosen->device;
  recommendation.because = reason(machine, recommendation.devices, chosen);
  for (std::uint32_t i = 0; i < classes.size(); ++i) {
    if (auto advice = fewest_of(model, request, classes[i])) {
      advice->device_class = i;
      recommendation.hardware.push_back(*advice);
    }
  }
  std::stable_sort(recommendation.hardware.begin(), recommendation.hardware.end(),
                   [&](const auto& a, const auto& b) {
                     return std::pair(a.count, classes[a.device_class].memory_bytes) <
                            std::pair(b.count, classes[b.device_class].memory_bytes);
                   });
  return recommendation;
}

}  // namespace muster

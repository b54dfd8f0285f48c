// Where free memory becomes a budget. The margin is a share of the device's whole memory and is
// taken off what is free, so a device that other programs half fill keeps as much in reserve as an
// idle one. A limit of the user can only lower a budget. The host's memory is that of the largest
// node, not the sum of all: a stage in host memory is on one node.

#include "planner/plan/device_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "base/text.h"

namespace muster {
namespace {

constexpr std::size_t kNamesShown = 8;

Error unknown_device(const Machine& machine, std::string_view name) {
  std::vector<std::string> names;
  for (const auto& device : machine.devices) names.push_back(device.name());
  auto candidates = names;
  candidates.insert(candidates.end(), {"cpu", "disk"});
  if (const auto nearest = nearest_name(name, candidates)) {
    return Error{ErrorKind::InvalidArgument, fmt::format("{} has no device {}: did you mean {}?",
                                                         machine.name, name, *nearest)};
  }
  const auto shown = std::min(names.size(), kNamesShown);
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{} has no device {}: it has {}{}", machine.name, name,
                           fmt::join(names.begin(), names.begin() + static_cast<long>(shown), ", "),
                           shown < names.size() ? ", …" : "")};
}

std::uint64_t margin_bytes(const PlanMargin& margin, std::uint64_t memory) {
  return margin.bytes + static_cast<std::uint64_t>(margin.share * static_cast<double>(memory));
}

DeviceBudget budget(std::uint64_t memory, std::uint64_t free, const PlanMargin& margin) {
  const auto kept = margin_bytes(margin, memory);
  return {.usable_bytes = free > kept ? free - kept : 0, .margin_bytes = kept};
}

bool is_cpu_machine(const Machine& machine) {
  return std::all_of(machine.devices.begin(), machine.devices.end(),
                     [](const auto& device) { return device.kind == DeviceKind::Cpu; });
}

}  // namespace

Result<std::uint32_t> device_by_name(const Machine& machine, std::string_view name) {
  std::uint32_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  if (error == std::errc() && end == name.data() + name.size() && index < machine.devices.size()) {
    return index;
  }
  for (std::uint32_t i = 0; i < machine.devices.size(); ++i) {
    const auto& device = machine.devices[i];
    if (device.name() == name || (device.uuid && *device.uuid == name)) return i;
  }
  return unknown_device(machine, name);
}

Result<MachineBudgets> machine_budgets(const Machine& machine, const PlanMargin& margin,
                                       const PlanRequest& request) {
  MachineBudgets budgets;
  for (const auto& device : machine.devices) {
    budgets.devices.push_back(
        budget(machine.classes[device.device_class].memory_bytes, device.free_bytes, margin));
  }
  if (!is_cpu_machine(machine)) {
    std::uint64_t host_bytes = 0;
    for (const auto& node : machine.nodes) host_bytes = std::max(host_bytes, node.host_bytes);
    budgets.host = budget(host_bytes, host_bytes, margin);
  }
  for (const auto& [name, bytes] : request.max_memory) {
    if (name == "disk") {
      budgets.has_disk = bytes > 0;
      continue;
    }
    auto& place =
        name == "cpu" ? budgets.host : budgets.devices[MUSTER_TRY(device_by_name(machine, name))];
    place.usable_bytes = std::min(place.usable_bytes, bytes);
  }
  if (!request.may_offload) {
    budgets.host = {};
    budgets.has_disk = false;
  }
  return budgets;
}

}  // namespace muster

// Which requested devices may be used. A list is first read as a whole, because counts such as
// 2xcpu share the cores among all of them. Only when that fails for a device that is not here is
// it read name by name, so that one missing GPU does not hide the others. A device keeps every
// reason against it, not only the first.

#include "doctor/availability.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "hw/device_names.h"

namespace muster {
namespace {

void add_missing(Availability& availability, const std::string& name, const std::string& reason) {
  availability.requested.push_back(name);
  availability.unavailable.push_back(name);
  availability.errors[name] = reason;
}

void add_found(Availability& availability, const std::vector<Device>& devices) {
  for (const auto& device : devices) {
    availability.requested.push_back(device.name());
    availability.available.push_back(device.name());
    availability.devices.push_back(device);
  }
}

}  // namespace

bool concerns(const Check& check, const std::string& device) {
  return check.device.empty() || device == check.device || device.starts_with(check.device + ":");
}

Result<Availability> request_devices(const std::string& list, const Inventory& inventory,
                                     std::optional<std::uint32_t> cores_per_device) {
  Availability availability;
  if (trim(list) == "auto") {
    std::vector<Device> gpus;
    std::copy_if(
        inventory.gpus.begin(), inventory.gpus.end(), std::back_inserter(gpus),
        [](const Device& gpu) { return gpu.hidden_by.empty() || !gpu.lost_reason.empty(); });
    add_found(availability, gpus);
    add_found(availability, inventory.cpus);
    return availability;
  }
  // The whole list first: counts share the cores, and a name given twice is seen.
  const auto whole = parse_devices(list, inventory, cores_per_device);
  if (whole) {
    add_found(availability, *whole);
    return availability;
  }
  if (whole.error().kind == ErrorKind::InvalidArgument) return whole.error();
  for (const auto& piece : split(list, ',')) {
    const std::string name(trim(piece));
    const auto devices = parse_devices(name, inventory, cores_per_device);
    if (devices) {
      add_found(availability, *devices);
    } else if (devices.error().kind == ErrorKind::InvalidArgument) {
      return devices.error();
    } else {
      add_missing(availability, name, devices.error().message);
    }
  }
  return availability;
}

// Checks without a device are about the whole machine and take no single device out.
void leave_out_unfit(Availability& availability, std::span<const Check> checks) {
  for (const auto& check : checks) {
    if (check.verdict != Verdict::Unfit || check.device.empty()) continue;
    auto& available = availability.available;
    for (const auto& name : availability.requested) {
      if (!concerns(check, name)) continue;
      const auto found = std::find(available.begin(), available.end(), name);
      if (found != available.end()) {
        available.erase(found);
        availability.unavailable.push_back(name);
      }
      auto& reason = availability.errors[name];
      if (reason != check.sentence) reason += (reason.empty() ? "" : "; ") + check.sentence;
    }
  }
}

std::vector<Check> check_requested(const Availability& availability) {
  std::vector<Check> checks;
  for (const auto& name : availability.unavailable) {
    checks.push_back({.name = "requested",
                      .device = name,
                      .verdict = Verdict::Unfit,
                      .sentence = availability.errors.at(name),
                      .advice = "name devices that are here; `muster devices` lists them"});
  }
  return checks;
}

}  // namespace muster

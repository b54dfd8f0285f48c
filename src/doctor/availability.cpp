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

Result<Availability> request_devices(const std::string& list, const Inventory& inventory,
                                     std::optional<std::uint32_t> cores_per_device) {
  Availability availability;
  if (trim(list) == "auto") {
    std::vector<Device> gpus;
    std::copy_if(inventory.gpus.begin(), inventory.gpus.end(), std::back_inserter(gpus),
                 [](const Device& gpu) { return gpu.hidden_by.empty(); });
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

void leave_out_unfit(Availability& availability, std::span<const Check> checks) {
  for (const auto& check : checks) {
    if (check.verdict != Verdict::Unfit || check.device.empty()) continue;
    const auto found =
        std::find(availability.available.begin(), availability.available.end(), check.device);
    if (found != availability.available.end()) {
      availability.available.erase(found);
      availability.unavailable.push_back(check.device);
    }
    const auto& left_out = availability.unavailable;
    if (std::find(left_out.begin(), left_out.end(), check.device) == left_out.end()) continue;
    auto& reason = availability.errors[check.device];
    reason += (reason.empty() ? "" : "; ") + check.sentence;
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

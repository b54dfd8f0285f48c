#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "doctor/check.h"
#include "spec/device.h"

namespace muster {

/// Which of the devices that were asked for can be used. Every requested one is in exactly one of
/// the two lists, under the name by which it was asked for where it is not here.
struct Availability {
  std::vector<std::string> requested;
  std::vector<std::string> available;
  std::vector<std::string> unavailable;
  std::map<std::string, std::string> errors;  // why, for each of `unavailable`
  std::vector<Device> devices;                // those requested that are here, fit or not

  bool all_available() const { return unavailable.empty() && !requested.empty(); }
};

/// Reads a list as `--devices` takes it, name by name, so that one that is missing does not hide
/// the others. "auto" means every device here that is not hidden; one that is lost, too.
///
/// Errors: InvalidArgument (no name of a device, or one twice).
Result<Availability> request_devices(const std::string& list, const Inventory& inventory,
                                     std::optional<std::uint32_t> cores_per_device);

/// Whether a check is about a device or what it is a part of: a slice stands and falls with its
/// GPU, every device with the machine.
bool concerns(const Check& check, const std::string& device);

/// Takes devices that a check calls unfit out of `available`.
void leave_out_unfit(Availability& availability, std::span<const Check> checks);

/// A check for each requested device that is not here.
std::vector<Check> check_requested(const Availability& availability);

}  // namespace muster

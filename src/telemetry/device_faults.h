#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "spec/device.h"
#include "spec/telemetry.h"

namespace muster {

/// What the drivers of the devices for work report that spoils what a device computes, or stops it:
/// who has such a device lets it compute nothing more.
///
/// Faults are what `judge` (health.h) calls unfit by XIDs and by the recovery that the driver asks
/// for, and uncorrected memory errors that came since the first look: the driver counts them from
/// its own start on, and rows that failed then may be remapped. A reset begins the count anew. A
/// driver that tells which recovery it asks for decides on memory errors by that, since it may have
/// contained them.
///
/// Threads: not thread-safe; owned by one loop.
class DeviceFaults {
 public:
  explicit DeviceFaults(const std::vector<Device>& devices);

  /// Those that began, became more or are over since the last look. CPUs have none. One that became
  /// less is no change: whoever started the device in spite of it knew of more. Where a device is
  /// down, or does not tell what it told before, what was known stays.
  std::vector<DeviceFault> changes(const TelemetrySnapshot& snapshot);

 private:
  struct Known {
    Device device;
    std::optional<double> ecc_before{};  // memory errors at the first look; 0 after a reset
    std::optional<double> ecc_last{};    // at the last look that had them
    bool has_recovery = false;           // it tells what recovery it asks for
    /// How often each cause of the fault was told: "xid 48", "ecc". Empty: there is no fault.
    std::map<std::string, double> told{};

    void take_errors(double errors);
  };

  std::vector<Known> devices_;
};

}  // namespace muster

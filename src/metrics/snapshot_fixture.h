#pragma once

#include <string>

#include "spec/telemetry.h"

namespace muster {

inline DeviceStatus gpu_status(std::uint32_t index, const std::string& uuid) {
  DeviceStatus status;
  Device& device = status.identity.device;
  device.kind = DeviceKind::Cuda;
  device.index = index;
  device.model = "NVIDIA H200";
  device.uuid = uuid;
  device.pci_address = "00000000:1B:00.0";
  device.compute_capability = 90;
  status.identity.driver_version = "590.48.01";
  status.name = device.name();
  status.is_up = true;
  return status;
}

inline DeviceStatus slice_status(const DeviceStatus& parent, std::uint32_t index,
                                 const std::string& uuid) {
  DeviceStatus status = gpu_status(index, uuid);
  status.identity.parent = parent.identity.device.uuid;
  status.identity.mig_profile = "1g.18gb";
  status.identity.gpu_instance = 7 + index;
  return status;
}

inline DeviceStatus cpu_status(std::uint32_t index) {
  DeviceStatus status;
  status.identity.device.kind = DeviceKind::Cpu;
  status.identity.device.index = index;
  status.identity.device.model = "AMD EPYC";
  status.name = status.identity.device.name();
  status.is_up = true;
  return status;
}

/// Every reading of the scope, each with a value of its own.
inline void set_all_readings(DeviceStatus& status, ReadingScope scope) {
  for (const ReadingInfo& info : reading_table()) {
    if (info.scope == scope) {
      status.readings.set(info.reading, 1.5 + static_cast<double>(info.reading));
    }
  }
}

}  // namespace muster

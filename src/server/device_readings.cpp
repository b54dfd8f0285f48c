// Joins two lists that know devices by different names. A UUID decides where both sides have one;
// else the kind, the index and the MIG slice must agree. A CPU worker that owns a share of the
// cores has no entry of its own and gets the readings of the machine. What a sensor does not report
// stays absent, so that no strategy takes an unknown value for zero.

#include "server/device_readings.h"

namespace muster {
namespace {

using enum Reading;

// A UUID goes first because an index may change from one start of the driver to the next.
bool is_same(const Device& left, const Device& right) {
  if (left.kind != right.kind) return false;
  if (left.uuid && right.uuid) return *left.uuid == *right.uuid;
  if (left.kind == DeviceKind::Cpu) return left.cpus == right.cpus || left.index == right.index;
  return left.index == right.index && left.slice == right.slice;
}

std::optional<std::uint64_t> bytes(const Readings& readings, Reading reading) {
  const auto value = readings.get(reading);
  return value ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
}

std::optional<double> first_of(const Readings& readings, Reading one, Reading other) {
  const auto value = readings.get(one);
  return value ? value : readings.get(other);
}

const DeviceStatus* find(const Device& device, const TelemetrySnapshot& snapshot) {
  for (const auto& status : snapshot.devices) {
    if (is_same(device, status.identity.device)) return &status;
  }
  // A share of a machine's cores is watched as part of the machine's first CPU.
  for (const auto& status : snapshot.devices) {
    const bool is_cpu = status.identity.device.kind == DeviceKind::Cpu;
    if (device.kind == DeviceKind::Cpu && is_cpu) return &status;
  }
  return nullptr;
}

}  // namespace

std::optional<DispatchDevice> readings_of(const Device& device, const TelemetrySnapshot& snapshot) {
  const auto* status = find(device, snapshot);
  if (status == nullptr) return std::nullopt;
  const auto& readings = status->readings;
  DispatchDevice known;
  if (device.kind == DeviceKind::Cpu) {
    known.memory_total_bytes = bytes(readings, HostMemorySize);
    known.memory_free_bytes = bytes(readings, HostMemoryAvailable);
    known.utilization = readings.get(CpuUtilization);
    return known;
  }
  known.memory_total_bytes = bytes(readings, GpuMemorySize);
  known.memory_free_bytes = bytes(readings, GpuMemoryFree);
  known.utilization = readings.get(GpuUtilization);
  known.temperature_celsius = readings.get(GpuTemperatureCore);
  known.power_watts = first_of(readings, GpuPowerInstant, GpuPowerAverage);
  return known;
}

}  // namespace muster

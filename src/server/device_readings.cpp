// What a sensor does not report stays absent, so that no strategy takes an unknown value for zero.
// A CPU worker that owns a share of the cores has no entry of its own and gets the readings of the
// machine.

#include "server/device_readings.h"

#include "telemetry/watched_status.h"

namespace muster {
namespace {

using enum Reading;

std::optional<std::uint64_t> bytes(const Readings& readings, Reading reading) {
  const auto value = readings.get(reading);
  return value ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
}

std::optional<double> first_of(const Readings& readings, Reading one, Reading other) {
  const auto value = readings.get(one);
  return value ? value : readings.get(other);
}

}  // namespace

std::optional<DispatchDevice> readings_of(const Device& device, const TelemetrySnapshot& snapshot) {
  const auto* status = watched_status(device, snapshot);
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

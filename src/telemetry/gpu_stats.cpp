// Two clients expect the same readings under two sets of names and units, so each has its own table
// here and none is derived from another. A value that is not known becomes null, never 0.

#include "telemetry/gpu_stats.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_values.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMb = 1048576.0;

std::optional<double> times(std::optional<double> value, double factor) {
  return value ? std::optional(*value * factor) : std::nullopt;
}

std::optional<double> power(const DeviceStatus& status) {
  const auto instant = status.readings.get(Reading::GpuPowerInstant);
  return instant ? instant : status.readings.get(Reading::GpuPowerAverage);
}

std::optional<double> memory_size(const DeviceStatus& status) {
  if (const auto size = status.readings.get(Reading::GpuMemorySize)) return size;
  const auto& known = status.identity.device.memory_total_bytes;
  return known ? std::optional(static_cast<double>(*known)) : std::nullopt;
}

// The share of the memory that is used.
std::optional<double> memory_share(const DeviceStatus& status) {
  const auto size = memory_size(status);
  const auto used = status.readings.get(Reading::GpuMemoryUsed);
  return size && used && *size > 0 ? std::optional(*used / *size) : std::nullopt;
}

/// "8.6" of 86. Source: CUDA, compute capability major * 10 + minor.
Json capability(const DeviceStatus& status) {
  const auto& value = status.identity.device.compute_capability;
  return value ? Json(fmt::format("{}.{}", *value / 10, *value % 10)) : Json(nullptr);
}

template <typename Add>
void for_each_gpu(const TelemetrySnapshot& snapshot, Add add) {
  for (const auto& status : snapshot.devices) {
    if (status.identity.device.kind != DeviceKind::Cpu && !status.identity.parent) add(status);
  }
}

std::string key(const DeviceStatus& status) {
  return fmt::format("gpu_{}", status.identity.device.index);
}

std::string text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string gpu_stats_json(const TelemetrySnapshot& snapshot) {
  auto devices = Json::array();
  for_each_gpu(snapshot, [&](const DeviceStatus& status) {
    const auto& readings = status.readings;
    devices.push_back(
        {{"index", status.identity.device.index},
         {"name", status.identity.device.model},
         {"compute_capability", capability(status)},
         {"memory_total_mb", or_null(times(memory_size(status), 1 / kMb))},
         {"memory_free_mb", or_null(times(readings.get(Reading::GpuMemoryFree), 1 / kMb))},
         {"memory_usage_percent", or_null(times(memory_share(status), 100))},
         {"utilization", or_null(readings.get(Reading::GpuUtilization))},
         {"temperature_c", or_null(chip_temperature(readings))},
         {"power_draw_watts", or_null(power(status))}});
  });
  const auto whole = static_cast<std::time_t>(std::floor(snapshot.unix_seconds));
  return text({{"timestamp", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(whole))},
               {"devices", std::move(devices)}});
}

std::string gpu_info_json(const TelemetrySnapshot& snapshot) {
  auto gpus = Json::object();
  for_each_gpu(snapshot, [&](const DeviceStatus& status) {
    const auto& readings = status.readings;
    gpus[key(status)] = {
        {"id", status.identity.device.index},
        {"name", status.identity.device.model},
        {"memory_total", or_null(times(memory_size(status), 1 / kMb))},
        {"memory_used", or_null(times(readings.get(Reading::GpuMemoryUsed), 1 / kMb))},
        {"memory_free", or_null(times(readings.get(Reading::GpuMemoryFree), 1 / kMb))},
        {"memory_utilization", or_null(times(memory_share(status), 100))},
        {"gpu_utilization", or_null(times(readings.get(Reading::GpuUtilization), 100))},
        {"temperature", or_null(chip_temperature(readings))},
        {"power_draw", or_null(power(status))}};
  });
  return text(gpus);
}

}  // namespace muster

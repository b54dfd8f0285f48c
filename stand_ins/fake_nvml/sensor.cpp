#include "fake_nvml/sensor.h"

#include <algorithm>
#include <cmath>

namespace muster::fake_nvml {
namespace {

constexpr std::int64_t kRefreshNs = 100'000'000;
constexpr std::int64_t kInstantWindowNs = 25'000'000;
constexpr std::int64_t kAverageWindowNs = 1'000'000'000;
constexpr std::int64_t kUtilizationNs = 166'666'667;

// Idle and under load. Source: nvidia_gpu_exporter, its captures of an H200.
constexpr double kCoreIdle = 28;
constexpr double kCoreLoad = 52;
constexpr double kMemoryIdle = 32;
constexpr double kMemoryLoad = 40;

// What slows the clock to a half or below (nvml.h: "a factor of 2 or more"), and what a little.
constexpr std::uint32_t kHardwareBits = 0x8 | 0x40 | 0x80;
constexpr std::uint32_t kSoftwareBits = 0x2 | 0x4 | 0x10 | 0x20 | 0x100;
constexpr double kSoftwareShare = 0.85;

std::int64_t floor_to(std::int64_t value, std::int64_t step) {
  const std::int64_t rest = value % step;
  return value - (rest < 0 ? rest + step : rest);
}

}  // namespace

Sensor::Sensor(const FakeGpu& gpu) : gpu_(gpu), lagged_load_(gpu.load, gpu.temperature_lag_s) {}

double Sensor::load(std::int64_t now_ns) const { return gpu_.load.value(seconds(now_ns)); }

double Sensor::mean_load(std::int64_t from_ns, std::int64_t until_ns) const {
  return gpu_.load.mean(seconds(from_ns), seconds(until_ns));
}

double Sensor::load_seconds(std::int64_t now_ns) const {
  return gpu_.load.integral(seconds(now_ns));
}

double Sensor::true_joules(double from_s, double until_s) const {
  const double at_load = gpu_.load.integral(until_s) - gpu_.load.integral(from_s);
  return gpu_.idle_watts * (until_s - from_s) + (gpu_.load_watts - gpu_.idle_watts) * at_load;
}

std::int64_t Sensor::last_edge_ns(std::int64_t now_ns) const {
  return gpu_.refresh_phase_ns + floor_to(now_ns - gpu_.refresh_phase_ns, kRefreshNs);
}

std::optional<std::uint64_t> Sensor::energy_mj(std::int64_t now_ns) const {
  if (gpu_.energy_missing && gpu_.energy_missing->covers(seconds(now_ns))) return std::nullopt;
  const double edge = std::max(0.0, seconds(last_edge_ns(now_ns)));
  double start = 0;
  double joules = gpu_.energy_start_joules;
  for (const double reset : gpu_.energy_resets) {
    if (reset > edge) break;
    start = reset;
    joules = 0;
  }
  joules += true_joules(start, edge);
  return static_cast<std::uint64_t>(joules * 1e3);
}

double Sensor::instant_watts(std::int64_t now_ns) const {
  const auto edge = last_edge_ns(now_ns);
  return true_joules(seconds(edge - kInstantWindowNs), seconds(edge)) / seconds(kInstantWindowNs);
}

double Sensor::average_watts(std::int64_t now_ns) const {
  const auto edge = last_edge_ns(now_ns);
  return true_joules(seconds(edge - kAverageWindowNs), seconds(edge)) / seconds(kAverageWindowNs);
}

std::uint32_t Sensor::utilization_percent(std::int64_t now_ns) const {
  const auto end = floor_to(now_ns, kUtilizationNs);
  return static_cast<std::uint32_t>(std::lround(100 * mean_load(end - kUtilizationNs, end)));
}

std::uint32_t Sensor::memory_busy_percent(std::int64_t now_ns) const {
  const auto end = floor_to(now_ns, kUtilizationNs);
  const double share = gpu_.activity[static_cast<std::size_t>(Activity::MemoryBusy)];
  return static_cast<std::uint32_t>(
      std::lround(100 * share * mean_load(end - kUtilizationNs, end)));
}

std::optional<std::int32_t> Sensor::core_celsius(std::int64_t now_ns) const {
  const double load = lagged_load_.value(seconds(now_ns));
  const auto celsius =
      value(ValueId::TemperatureCore, now_ns, kCoreIdle + (kCoreLoad - kCoreIdle) * load);
  if (!celsius) return std::nullopt;
  return static_cast<std::int32_t>(std::lround(*celsius));
}

std::optional<std::int32_t> Sensor::memory_celsius(std::int64_t now_ns) const {
  const auto& scripted = gpu_.values[static_cast<std::size_t>(ValueId::TemperatureMemory)];
  if (!gpu_.model->has_memory_temperature && !scripted.curve) return std::nullopt;
  const double load = lagged_load_.value(seconds(now_ns));
  const auto celsius =
      value(ValueId::TemperatureMemory, now_ns, kMemoryIdle + (kMemoryLoad - kMemoryIdle) * load);
  if (!celsius) return std::nullopt;
  return static_cast<std::int32_t>(std::lround(*celsius));
}

std::uint32_t Sensor::clock_event_bits(std::int64_t now_ns) const {
  std::uint32_t bits = load(now_ns) > 0 ? 0 : 1;
  for (const auto& throttle : gpu_.throttles) {
    if (throttle.curve.value(seconds(now_ns)) > 0) bits |= throttle.bit;
  }
  return bits;
}

std::uint64_t Sensor::clock_event_ns(std::uint32_t bit, std::int64_t now_ns) const {
  double held = 0;
  for (const auto& throttle : gpu_.throttles) {
    if (throttle.bit == bit) held += throttle.curve.integral(seconds(now_ns));
  }
  return static_cast<std::uint64_t>(std::llround(held * 1e9));
}

std::uint32_t Sensor::sm_clock_mhz(std::int64_t now_ns) const {
  const auto bits = clock_event_bits(now_ns);
  if ((bits & 1) != 0) return gpu_.model->sm_clock_idle_mhz;
  const auto top = gpu_.model->sm_clock_max_mhz;
  if ((bits & kHardwareBits) != 0) return top / 2;
  if ((bits & kSoftwareBits) != 0) return static_cast<std::uint32_t>(top * kSoftwareShare);
  return top;
}

std::optional<double> Sensor::value(ValueId id, std::int64_t now_ns, double fallback) const {
  const auto& scripted = gpu_.values[static_cast<std::size_t>(id)];
  if (scripted.is_absent) return std::nullopt;
  return scripted.curve ? scripted.curve->value(seconds(now_ns)) : fallback;
}

}  // namespace muster::fake_nvml

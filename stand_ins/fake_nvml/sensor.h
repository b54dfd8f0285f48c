#pragma once

#include <cstdint>
#include <optional>

#include "fake_nvml/curve.h"
#include "fake_nvml/scenario.h"

namespace muster::fake_nvml {

/// What the sensors of one GPU tell at a time, from its true load. Everything is worked out in
/// closed form from the scenario: nothing is stored between calls.
///
/// True power P(t) is idle_watts + load(t) x (load_watts - idle_watts). Every 100 ms, at edges that
/// begin at the GPU's own phase, the board's controller refreshes the energy counter (the integral
/// of P since time 0), the instant power (the mean of P over the last 25 ms) and the average (1 s).
/// Source: Yang et al. 2024, "Part-time Power Measurements: nvidia-smi's Lack of Attention",
/// arXiv 2312.02741: A100 and H100 see 25 ms of each 100.
///
/// Units: time in nanoseconds since the driver was loaded. Threads: immutable.
class Sensor {
 public:
  explicit Sensor(const FakeGpu& gpu);

  double load(std::int64_t now_ns) const;
  double mean_load(std::int64_t from_ns, std::int64_t until_ns) const;
  /// Seconds at full load so far: what byte counters rise by.
  double load_seconds(std::int64_t now_ns) const;

  double true_joules(double from_s, double until_s) const;
  /// Millijoules; nullopt while the scenario hides the counter.
  std::optional<std::uint64_t> energy_mj(std::int64_t now_ns) const;
  double instant_watts(std::int64_t now_ns) const;
  double average_watts(std::int64_t now_ns) const;

  /// Percent of the last full sixth of a second. Source: nvml.h 13.3, nvmlUtilization_t: "between 1
  /// second and 1/6 second".
  std::uint32_t utilization_percent(std::int64_t now_ns) const;
  std::uint32_t memory_busy_percent(std::int64_t now_ns) const;

  std::optional<std::int32_t> core_celsius(std::int64_t now_ns) const;
  std::optional<std::int32_t> memory_celsius(std::int64_t now_ns) const;

  /// nvmlClocksEventReason*.
  std::uint32_t clock_event_bits(std::int64_t now_ns) const;
  /// How long the reason of a bit has held.
  std::uint64_t clock_event_ns(std::uint32_t bit, std::int64_t now_ns) const;
  std::uint32_t sm_clock_mhz(std::int64_t now_ns) const;

  /// A value of the scenario, else `fallback`; nullopt where the scenario says that there is none.
  std::optional<double> value(ValueId id, std::int64_t now_ns, double fallback) const;

 private:
  std::int64_t last_edge_ns(std::int64_t now_ns) const;

  const FakeGpu& gpu_;
  Lagged lagged_load_;
};

/// Seconds of a time.
inline double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace muster::fake_nvml

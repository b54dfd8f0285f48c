#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "spec/telemetry.h"
#include "telemetry/collector.h"

namespace muster {

/// What a reading was over a while.
struct ReadingStatistics {
  std::uint64_t count = 0;
  double min = 0;
  double mean = 0;
  double max = 0;
  double p95 = 0;  // nearest rank: the least value that 95 % are not above
};

/// nullopt for no values. Threads: pure.
/// Source: Hyndman and Fan 1996, "Sample Quantiles in Statistical Packages", definition 1.
std::optional<ReadingStatistics> statistics_of(std::vector<double> values);

/// The same, value by value, in bounded memory: count, min, mean and max are exact whatever comes;
/// p95 is that of all values up to `kKeptMost`, and beyond of every second, fourth, … of them.
///
/// Not thread-safe.
class RunningStatistics {
 public:
  static constexpr std::size_t kKeptMost = 1 << 16;  // 1.8 hours of ten a second

  void add(double value);
  std::optional<ReadingStatistics> statistics() const;

 private:
  std::vector<double> kept_;
  std::uint64_t stride_ = 1;  // every so many values one is kept
  std::uint64_t count_ = 0;
  double sum_ = 0;
  double min_ = 0;
  double max_ = 0;
};

/// The readings of one device over the life of something, sample by sample.
///
/// Not thread-safe; owned by whoever subscribed.
class DeviceUse {
 public:
  void add(const DeviceSample& sample);

  std::uint64_t sample_count() const { return sample_count_; }
  std::optional<ReadingStatistics> utilization() const { return utilization_.statistics(); }
  std::optional<ReadingStatistics> memory_bytes() const { return memory_bytes_.statistics(); }
  std::optional<ReadingStatistics> power_watts() const { return power_watts_.statistics(); }
  std::optional<ReadingStatistics> temperature() const { return temperature_.statistics(); }

 private:
  std::uint64_t sample_count_ = 0;
  RunningStatistics utilization_;   // ratio
  RunningStatistics memory_bytes_;  // used
  RunningStatistics power_watts_;
  RunningStatistics temperature_;  // celsius, of the chip
};

/// All GPUs together, under the names that programs written for single-number monitors expect
/// (docs/gpu-statistics.md). Percent, MB of 2^20 bytes, watts; absent where no GPU told.
struct TotalUse {
  std::optional<double> total_avg_utilization;  // the sum of the GPUs' means
  std::optional<double> total_max_utilization;  // the highest of any GPU
  std::optional<double> total_avg_memory_mb;    // the sum of the means
  std::optional<double> total_max_memory_mb;    // the highest of any GPU
  std::optional<double> total_avg_power_w;      // the sum of the means
  std::optional<double> total_max_power_w;      // the highest of any GPU
  std::uint64_t total_samples = 0;
  std::optional<double> avg_utilization_per_gpu;
  std::optional<double> avg_memory_per_gpu_mb;
  bool any_gpu_active = false;  // one was above 5 % at some time
};

/// uses: of the GPUs. Threads: pure.
TotalUse total_use(const std::vector<const DeviceUse*>& uses);

/// The share of samples in which each clock event held; for `why_slow`.
std::vector<std::pair<ClockEvent, double>> clock_event_shares(
    const std::vector<HistoryPoint>& masks);

}  // namespace muster

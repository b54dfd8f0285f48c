// Statistics in bounded memory. Count, mean and extremes are running values; for the percentile
// a thinned series is kept: when it is full, every second value is dropped and the stride
// doubles. That keeps values evenly spread over time, which a sample of the newest would not.

#include "telemetry/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace muster {
namespace {

constexpr double kMb = 1048576.0;

void add_if(const std::optional<double>& value, RunningStatistics& values) {
  if (value) values.add(*value);
}

void add_to(std::optional<double>& sum, double value) { sum = sum.value_or(0) + value; }

void raise(std::optional<double>& most, double value) {
  most = std::max(most.value_or(value), value);
}

}  // namespace

std::optional<ReadingStatistics> statistics_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  ReadingStatistics statistics;
  statistics.count = values.size();
  statistics.min = values.front();
  statistics.max = values.back();
  const auto count = static_cast<double>(values.size());
  statistics.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  // 95 * n / 100 in whole numbers: 0.95 * 20 is above 19 in binary.
  const auto rank = (values.size() * 95 + 99) / 100;
  statistics.p95 = values[rank - 1];
  return statistics;
}

void RunningStatistics::add(double value) {
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = count_ == 0 ? value : std::max(max_, value);
  sum_ += value;
  if (count_++ % stride_ != 0) return;
  if (kept_.size() == kKeptMost) {
    // The first, third, … of those kept are every second of twice the stride.
    for (std::size_t i = 0; i < kKeptMost / 2; ++i) kept_[i] = kept_[2 * i];
    kept_.resize(kKeptMost / 2);
    stride_ *= 2;
  }
  kept_.push_back(value);
}

std::optional<ReadingStatistics> RunningStatistics::statistics() const {
  auto statistics = statistics_of(kept_);
  if (!statistics) return std::nullopt;
  statistics->count = count_;
  statistics->min = min_;
  statistics->mean = sum_ / static_cast<double>(count_);
  statistics->max = max_;
  return statistics;
}

void DeviceUse::add(const DeviceSample& sample) {
  ++sample_count_;
  const auto& readings = sample.readings;
  add_if(readings.get(Reading::GpuUtilization), utilization_);
  add_if(readings.get(Reading::CpuUtilization), utilization_);
  add_if(readings.get(Reading::GpuMemoryUsed), memory_bytes_);
  add_if(readings.get(Reading::GpuPowerInstant), power_watts_);
  if (!readings.has(Reading::GpuPowerInstant)) {
    add_if(readings.get(Reading::GpuPowerAverage), power_watts_);
  }
  add_if(chip_temperature(readings), temperature_);
  const auto size = readings.get(Reading::CpuMemorySize);
  const auto available = readings.get(Reading::CpuMemoryAvailable);
  if (size && available) memory_bytes_.add(*size - std::min(*size, *available));
}

TotalUse total_use(const std::vector<const DeviceUse*>& uses) {
  // Source: ai_energy_benchmarks, utils/gpu.py: a GPU is active above 5 %.
  constexpr double kActive = 5;
  TotalUse total;
  std::size_t utilization_count = 0;
  std::size_t memory_count = 0;
  for (const auto* use : uses) {
    total.total_samples += use->sample_count();
    if (const auto utilization = use->utilization()) {
      ++utilization_count;
      add_to(total.total_avg_utilization, utilization->mean * 100);
      raise(total.total_max_utilization, utilization->max * 100);
    }
    if (const auto memory = use->memory_bytes()) {
      ++memory_count;
      add_to(total.total_avg_memory_mb, memory->mean / kMb);
      raise(total.total_max_memory_mb, memory->max / kMb);
    }
    if (const auto power = use->power_watts()) {
      add_to(total.total_avg_power_w, power->mean);
      raise(total.total_max_power_w, power->max);
    }
  }
  if (utilization_count > 0) {
    total.avg_utilization_per_gpu =
        *total.total_avg_utilization / static_cast<double>(utilization_count);
  }
  if (memory_count > 0) {
    total.avg_memory_per_gpu_mb = *total.total_avg_memory_mb / static_cast<double>(memory_count);
  }
  total.any_gpu_active = total.total_max_utilization.value_or(0) > kActive;
  return total;
}

std::vector<std::pair<ClockEvent, double>> clock_event_shares(
    const std::vector<HistoryPoint>& masks) {
  std::vector<std::pair<ClockEvent, double>> shares;
  if (masks.empty()) return shares;
  for (const auto& info : clock_events()) {
    const auto bit = static_cast<std::uint64_t>(info.event);
    const auto held = std::ranges::count_if(masks, [bit](const HistoryPoint& point) {
      return (static_cast<std::uint64_t>(point.value) & bit) != 0;
    });
    if (held > 0) {
      shares.emplace_back(info.event,
                          static_cast<double>(held) / static_cast<double>(masks.size()));
    }
  }
  return shares;
}

}  // namespace muster

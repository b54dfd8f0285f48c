// Rates and shares of the last minutes come from counters and points of the history, never from two
// frames, so that they do not depend on how often somebody looks.
// A counter that goes back was reset, by a driver's restart, say: then there is no rate rather
// than a negative one. A line has a value for each second; a value is held over a gap of a few
// seconds, and beyond that the line is broken.
#include "views/trends.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "telemetry/health.h"
#include "views/reading_text.h"

namespace muster {
namespace {

using std::chrono::seconds;

constexpr Duration kMinute = seconds(kMinuteSeconds);
constexpr Duration kShown = seconds(kTrendSeconds);
constexpr Duration kRateWindow = seconds(5);  // several points of the tier that is read each second
constexpr double kShareLeast = 0.05;          // three seconds of a minute are not worth a line
constexpr Duration kHeldFor = seconds(3);     // a gap that is no gap in a line

struct TimedEvent {
  Reading seconds_held;
  ClockEvent event;
};
constexpr std::array kTimedEvents{
    TimedEvent{Reading::GpuThrottleSwPowerCap, ClockEvent::SwPowerCap},
    TimedEvent{Reading::GpuThrottleSyncBoost, ClockEvent::SyncBoost},
    TimedEvent{Reading::GpuThrottleSwThermal, ClockEvent::SwThermal},
    TimedEvent{Reading::GpuThrottleHwThermal, ClockEvent::HwThermal},
    TimedEvent{Reading::GpuThrottleHwPowerBrake, ClockEvent::HwPowerBrake},
};

struct Growth {
  double amount = 0;
  double seconds = 0;
};

// From the first to the last point, over the time between them, and not over the window that was
// asked for.
std::optional<Growth> growth(const std::vector<HistoryPoint>& points) {
  if (points.size() < 2) return std::nullopt;
  const bool went_back = !std::is_sorted(
      points.begin(), points.end(),
      [](const HistoryPoint& a, const HistoryPoint& b) { return a.value < b.value; });
  const auto time = muster::seconds(points.back().at - points.front().at);
  if (went_back || time <= 0) return std::nullopt;
  return Growth{points.back().value - points.front().value, time};
}

// The sum of the rates of counters that are there.
std::optional<double> rate(const HistoryReader& history, std::uint32_t device,
                           std::initializer_list<Reading> counters) {
  std::optional<double> sum;
  for (const auto counter : counters) {
    const auto grown = growth(history(device, counter, kRateWindow));
    if (grown) sum = sum.value_or(0) + grown->amount / grown->seconds;
  }
  return sum;
}

std::vector<std::optional<double>> by_seconds(const std::vector<HistoryPoint>& points,
                                              TimePoint now) {
  std::vector<std::optional<double>> line;
  std::size_t next = 0;
  for (std::size_t i = 0; i < kTrendSeconds; ++i) {
    const auto at = now - seconds(kTrendSeconds - 1 - i);
    while (next < points.size() && points[next].at <= at) ++next;
    const bool is_there = next > 0 && at - points[next - 1].at <= kHeldFor;
    line.push_back(is_there ? std::optional(points[next - 1].value) : std::nullopt);
  }
  return line;
}

// The size does not change; of a CPU, what is not available is in use.
std::vector<std::optional<double>> memory_shares(const DeviceStatus& status,
                                                 const HistoryReader& history, std::uint32_t device,
                                                 TimePoint now) {
  const auto size = memory_use(status).size;
  if (!size || *size <= 0) return std::vector<std::optional<double>>(kTrendSeconds);
  const auto reading = is_gpu(status) ? Reading::GpuMemoryUsed : Reading::CpuMemoryAvailable;
  auto line = by_seconds(history(device, reading, kShown + kHeldFor), now);
  for (auto& value : line) {
    if (!value) continue;
    const auto share = *value / *size;
    value = std::clamp(is_gpu(status) ? share : 1 - share, 0.0, 1.0);
  }
  return line;
}

// How much of the last minute each reason held the clock: by the driver's own counters where it has
// them, else by the points at which it named the reason.
std::vector<std::pair<ClockEvent, double>> event_shares(const HistoryReader& history,
                                                        std::uint32_t device) {
  const auto masks = history(device, Reading::GpuClockEvents, kMinute);
  const auto seen = masks.size() < 2 ? 0.0 : muster::seconds(masks.back().at - masks.front().at);
  std::vector<std::pair<ClockEvent, double>> shares;
  for (const auto& info : clock_events()) {
    const auto timed = std::find_if(kTimedEvents.begin(), kTimedEvents.end(),
                                    [&](const TimedEvent& row) { return row.event == info.event; });
    std::optional<Growth> held;
    if (timed != kTimedEvents.end()) held = growth(history(device, timed->seconds_held, kMinute));
    double active_seconds = 0;
    if (held) {
      active_seconds = held->amount;
    } else if (seen > 0) {
      const auto bit = static_cast<std::uint64_t>(info.event);
      const auto count = std::count_if(masks.begin(), masks.end(), [&](const HistoryPoint& point) {
        return (static_cast<std::uint64_t>(point.value) & bit) != 0;
      });
      active_seconds = seen * static_cast<double>(count) / static_cast<double>(masks.size());
    }
    const auto share = std::min(1.0, active_seconds / muster::seconds(kMinute));
    if (share >= kShareLeast) shares.emplace_back(info.event, share);
  }
  return shares;
}

Trend gpu_trend(const DeviceStatus& status, const HistoryReader& history, std::uint32_t device) {
  Trend trend;
  trend.nvlink_bytes_per_second = rate(history, device,
                                       {Reading::GpuNvlinkSent, Reading::GpuNvlinkReceived,
                                        Reading::GpuXgmiSent, Reading::GpuXgmiReceived});
  trend.pcie_bytes_per_second =
      rate(history, device, {Reading::GpuPcieSent, Reading::GpuPcieReceived});
  trend.watts = status.readings.get(Reading::GpuPowerInstant);
  if (!trend.watts) trend.watts = status.readings.get(Reading::GpuPowerAverage);
  if (status.is_up) trend.why_slow = why_slow(status, event_shares(history, device));
  return trend;
}

}  // namespace

std::vector<Trend> find_trends(const TelemetrySnapshot& snapshot, const HistoryReader& history) {
  std::vector<Trend> trends;
  for (std::uint32_t device = 0; device < snapshot.devices.size(); ++device) {
    const auto& status = snapshot.devices[device];
    auto trend = is_gpu(status) ? gpu_trend(status, history, device) : Trend{};
    if (!is_gpu(status)) trend.watts = rate(history, device, {Reading::CpuEnergyPackage});
    const auto busy = is_gpu(status) ? Reading::GpuUtilization : Reading::CpuUtilization;
    trend.busy = by_seconds(history(device, busy, kShown + kHeldFor), snapshot.at);
    trend.memory = memory_shares(status, history, device, snapshot.at);
    const auto energy = is_gpu(status) ? Reading::GpuEnergy : Reading::CpuEnergyPackage;
    if (const auto grown = growth(history(device, energy, kMinute))) {
      trend.joules = grown->amount;
      trend.joules_seconds = grown->seconds;
    }
    trends.push_back(std::move(trend));
  }
  return trends;
}

}  // namespace muster

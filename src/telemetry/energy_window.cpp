// Energy between two moments, by the counter where its edges are known and else by integrating
// power. The method is part of the answer, and so is how far off it may be by its times. A
// counter that went back, or a window without edges or readings, gives a reason instead of a
// number, and so does a device that was silent for long.

#include "telemetry/energy_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace muster {
namespace {

constexpr auto kLimits = static_cast<std::uint64_t>(ClockEvent::SwPowerCap) |
                         static_cast<std::uint64_t>(ClockEvent::HwSlowdown) |
                         static_cast<std::uint64_t>(ClockEvent::SwThermal) |
                         static_cast<std::uint64_t>(ClockEvent::HwThermal) |
                         static_cast<std::uint64_t>(ClockEvent::HwPowerBrake);

// The slowest refresh of a counter that is known.
// Source: Yang et al. 2024, "Part-time Power Measurements: nvidia-smi's Lack of Attention".
constexpr Duration kRefresh = std::chrono::milliseconds(100);

// What of the time between an edge and its end of the window is no refresh.
Duration beyond_refresh(Duration gap) { return std::max(gap - kRefresh, Duration(0)); }

// Power is read ten times a second, or as seldom as the settings say. A busy machine leaves out a
// few readings; a device that says nothing for longer is lost or hangs, and its joules would be a
// guess.
constexpr Duration kSilenceMost = std::chrono::seconds(2);
constexpr int kGapsMost = 5;
constexpr int kPartsLeast = 20;  // 5 % of the window are what the sensor itself may be wrong by

// The longest time without a reading, where it is too long. gaps: between two readings each, at
// least one. ends: the longer of the times before the first reading and behind the last.
std::optional<Duration> long_silence(std::vector<Duration> gaps, Duration ends, Duration window) {
  std::ranges::sort(gaps);
  const auto longest = std::max(ends, gaps.back());
  const auto usual = gaps[gaps.size() / 2];
  const auto most = std::max({kSilenceMost, usual * kGapsMost, window / kPartsLeast});
  return longest > most ? std::optional(longest) : std::nullopt;
}

}  // namespace

void EnergyWindow::add(const DeviceSample& sample) {
  const auto& readings = sample.readings;
  auto watts = readings.get(Reading::GpuPowerInstant);
  if (!watts) watts = readings.get(Reading::GpuPowerAverage);
  if (watts) powers_.push_back({sample.at, *watts});
  auto counter = readings.get(Reading::GpuEnergy);
  if (!counter) counter = readings.get(Reading::CpuEnergyPackage);
  if (counter) {
    // Samples from before the first edge are the same counter, earlier.
    if (counter_ && *counter < *counter_) was_reset_ = true;
    counter_ = counter;
  }
  const auto events = readings.get(Reading::GpuClockEvents);
  if (events && (static_cast<std::uint64_t>(*events) & kLimits) != 0) was_throttled_ = true;
}

WindowEnergy EnergyWindow::by_counter(TimePoint end, const EnergyEdge& edge) const {
  WindowEnergy energy;
  const double between = seconds(*edge.at - *first_.at);
  const double joules = edge.joules - first_.joules;
  energy.was_reset = was_reset_ || joules < 0;
  if (energy.was_reset) {
    energy.missing_reason = "the energy counter was reset in the window";
    return energy;
  }
  if (between <= 0) {
    energy.missing_reason = "the window is shorter than a refresh of the energy counter";
    return energy;
  }
  energy.method = "counter";
  energy.counted_joules = joules;
  energy.counted_seconds = between;
  energy.mean_watts = joules / between;
  energy.joules = *energy.mean_watts * seconds(end - begin_);
  // What an edge's doubt is worth goes by the power there, at most the highest that was seen.
  double watts = *energy.mean_watts;
  for (const auto& power : powers_) watts = std::max(watts, power.watts);
  const auto far = beyond_refresh(begin_ - *first_.at) + beyond_refresh(*edge.at - end);
  energy.error_joules = watts * seconds(first_.within + edge.within + far);
  return energy;
}

WindowEnergy EnergyWindow::by_power(TimePoint end, const std::string& why) const {
  WindowEnergy energy;
  double joules = 0;
  double covered = 0;
  double rough = 0;  // by rectangles from the left: how much the form of the curve can matter
  std::vector<Duration> gaps;
  for (std::size_t i = 1; i < powers_.size(); ++i) {
    const auto from = std::max(powers_[i - 1].at, begin_);
    const auto to = std::min(powers_[i].at, end);
    if (to <= from) continue;
    const double step = seconds(to - from);
    gaps.push_back(to - from);
    joules += step * (powers_[i - 1].watts + powers_[i].watts) / 2;
    rough += step * std::abs(powers_[i].watts - powers_[i - 1].watts) / 2;
    covered += step;
  }
  if (covered <= 0) {
    energy.missing_reason = why + ", and there are no two power readings";
    return energy;
  }
  const auto ends = std::max(powers_.front().at - begin_, end - powers_.back().at);
  if (const auto silent = long_silence(std::move(gaps), ends, end - begin_)) {
    energy.missing_reason =
        fmt::format("{}, and for {:.1f} s no power was read", why, seconds(*silent));
    return energy;
  }
  const double length = seconds(end - begin_);
  energy.method = "integrated";
  energy.counter_missing_reason = why;
  energy.mean_watts = joules / covered;
  energy.joules = *energy.mean_watts * length;
  // What lies before the first and after the last reading is taken for the mean.
  energy.error_joules = rough * length / covered + *energy.mean_watts * (length - covered);
  return energy;
}

WindowEnergy EnergyWindow::close(TimePoint end, const EnergyEdge& edge) const {
  WindowEnergy energy;
  if (first_.at && edge.at) {
    energy = by_counter(end, edge);
  } else if (was_reset_) {
    energy.was_reset = true;
    energy.missing_reason = "the energy counter was reset in the window";
  } else {
    energy = by_power(end, first_.at ? edge.missing_reason : first_.missing_reason);
  }
  energy.is_exclusive = is_exclusive_;
  energy.was_throttled = was_throttled_;
  return energy;
}

}  // namespace muster

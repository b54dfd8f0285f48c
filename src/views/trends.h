#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "spec/telemetry.h"
#include "telemetry/collector.h"

namespace muster {

/// The readings of the last while, oldest first: `Collector::history`, or that of a recording.
using HistoryReader =
    std::function<std::vector<HistoryPoint>(std::uint32_t, Reading, Duration since)>;

inline constexpr std::size_t kTrendSeconds = 120;
inline constexpr std::size_t kMinuteSeconds = 60;

/// What the last minutes say of a device.
struct Trend {
  /// As it was so many seconds ago, the oldest first: the last reading that was there by then and
  /// at most three seconds old. Shares from 0 to 1. [kTrendSeconds]
  std::vector<std::optional<double>> busy;
  std::vector<std::optional<double>> memory;  // in use, of all
  /// That of the last minute alone. [kMinuteSeconds]
  std::span<const std::optional<double>> busy_minute() const {
    return std::span(busy).last(std::min(busy.size(), kMinuteSeconds));
  }
  std::optional<double> nvlink_bytes_per_second;  // NVLink or Infinity Fabric, both directions
  std::optional<double> pcie_bytes_per_second;    // both directions
  std::optional<double> watts;                    // the power reading; of a CPU, RAPL's rate
  std::optional<double> joules;                   // over `joules_seconds`, by the counter
  double joules_seconds = 0;
  std::string why_slow;  // "power cap 62 % of the last minute"; empty: nothing held it back
};

/// A trend for each device of the snapshot. Rates come from counters of the last five seconds; a
/// counter that went back, or has moved on for less than two points, gives none. Reasons for a low
/// clock are shares of the whole minute: what was before watching began counts as none.
///
/// Threads: pure but for `history`.
std::vector<Trend> find_trends(const TelemetrySnapshot& snapshot, const HistoryReader& history);

}  // namespace muster

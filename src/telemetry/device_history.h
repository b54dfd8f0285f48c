#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "spec/telemetry.h"
#include "telemetry/collector.h"

namespace muster {

/// The readings of one device over the last minutes: a ring for each tier with a row a visit and a
/// column a reading. Gauges are kept as float (seven digits), counters as double. All of it is
/// allocated at the start.
///
/// Not thread-safe; owned by the state of a collector.
class DeviceHistory {
 public:
  /// length: zero keeps nothing.
  DeviceHistory(DeviceKind kind, const std::array<Duration, kTierCount>& periods, Duration length);

  void add(const DeviceSample& sample);

  /// The points of a reading from `since` on, oldest first; empty for one that is not kept.
  std::vector<HistoryPoint> points(Reading reading, TimePoint since) const;

 private:
  struct Column {
    Reading reading;
    std::vector<float> gauges;     // [rows] of a gauge
    std::vector<double> counters;  // [rows] of a counter
  };
  struct Ring {
    std::vector<std::int64_t> times_ns;  // [rows]
    std::vector<std::uint64_t> present;  // [rows], a bit for each column
    std::vector<Column> columns;
    std::size_t next = 0;   // the row that is written next
    std::size_t count = 0;  // rows that hold something
  };

  static void add_row(Ring& ring, const DeviceSample& sample);

  std::array<Ring, kTierCount> rings_;
};

}  // namespace muster

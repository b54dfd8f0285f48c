#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
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
    bool is_counter;
    std::size_t offset;  // in a row
  };
  /// A row lies together, so that adding one touches one or two cache lines: i64 time in ns, u64 a
  /// bit for each column that is there, then the columns: f64 counters and f32 gauges.
  struct Ring {
    std::vector<std::byte> rows;
    std::size_t row_size = 0;
    std::size_t row_count = 0;
    std::vector<Column> columns;
    std::size_t next = 0;   // the row that is written next
    std::size_t count = 0;  // rows that hold something
  };

  static void add_row(Ring& ring, const DeviceSample& sample);

  std::array<Ring, kTierCount> rings_;
};

}  // namespace muster

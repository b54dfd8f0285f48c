// A ring per tier, laid out once: a row is a time, a mask of what is there, and the columns. A
// plot reads one column and a visit writes one row, and visits are far more frequent, so rows
// lie together. Nothing is allocated after the start, whatever is recorded.

#include "telemetry/device_history.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace muster {
namespace {

constexpr std::size_t kColumnsMax = 64;  // the bits that say which are there
constexpr std::size_t kRowHead = sizeof(std::int64_t) + sizeof(std::uint64_t);

template <typename Number>
void put(std::byte* place, Number value) {
  std::memcpy(place, &value, sizeof value);
}

template <typename Number>
Number get(const std::byte* place) {
  Number value;
  std::memcpy(&value, place, sizeof value);
  return value;
}

bool belongs(const ReadingInfo& info, DeviceKind kind) {
  return (info.scope == ReadingScope::Gpu) != (kind == DeviceKind::Cpu);
}

}  // namespace

DeviceHistory::DeviceHistory(DeviceKind kind, const std::array<Duration, kTierCount>& periods,
                             Duration length) {
  for (std::size_t tier = 0; tier < kTierCount; ++tier) {
    if (length <= Duration::zero()) continue;
    auto& ring = rings_[tier];
    auto offset = kRowHead;
    // The counters first: their eight bytes then need no padding.
    for (const bool is_counter : {true, false}) {
      for (const auto& info : reading_table()) {
        if (static_cast<std::size_t>(info.tier) != tier || !belongs(info, kind)) continue;
        if ((info.type == ReadingType::Counter) != is_counter) continue;
        ring.columns.push_back({info.reading, is_counter, offset});
        offset += is_counter ? sizeof(double) : sizeof(float);
      }
    }
    MUSTER_CHECK(ring.columns.size() <= kColumnsMax);
    if (ring.columns.empty()) continue;
    ring.row_size = offset;
    ring.row_count = static_cast<std::size_t>(length / periods[tier]) + 1;
    ring.rows.resize(ring.row_size * ring.row_count);
  }
}

void DeviceHistory::add(const DeviceSample& sample) {
  for (std::size_t tier = 0; tier < kTierCount; ++tier) {
    if (sample.tiers.test(tier) && rings_[tier].row_count > 0) add_row(rings_[tier], sample);
  }
}

void DeviceHistory::add_row(Ring& ring, const DeviceSample& sample) {
  auto* row = ring.rows.data() + ring.next * ring.row_size;
  ring.next = (ring.next + 1) % ring.row_count;
  ring.count = std::min(ring.count + 1, ring.row_count);
  std::uint64_t present = 0;
  for (std::size_t i = 0; i < ring.columns.size(); ++i) {
    const auto& column = ring.columns[i];
    const auto value = sample.readings.get(column.reading);
    if (!value) continue;
    present |= std::uint64_t{1} << i;
    if (column.is_counter) {
      put(row + column.offset, *value);
    } else {
      put(row + column.offset, static_cast<float>(*value));
    }
  }
  put(row, std::int64_t{sample.at.time_since_epoch().count()});
  put(row + sizeof(std::int64_t), present);
}

std::vector<HistoryPoint> DeviceHistory::points(Reading reading, TimePoint since) const {
  const auto& ring = rings_[static_cast<std::size_t>(reading_info(reading).tier)];
  const auto column = std::ranges::find(ring.columns, reading, &Column::reading);
  std::vector<HistoryPoint> points;
  if (column == ring.columns.end()) return points;
  const auto bit = std::uint64_t{1} << (column - ring.columns.begin());
  for (std::size_t i = 0; i < ring.count; ++i) {
    const auto index = (ring.next + ring.row_count - ring.count + i) % ring.row_count;
    const auto* row = ring.rows.data() + index * ring.row_size;
    const TimePoint at{Duration(get<std::int64_t>(row))};
    if (at < since || (get<std::uint64_t>(row + sizeof(std::int64_t)) & bit) == 0) continue;
    const auto* place = row + column->offset;
    points.push_back({at, column->is_counter ? get<double>(place) : double{get<float>(place)}});
  }
  return points;
}

}  // namespace muster

#include "telemetry/device_history.h"

#include <algorithm>

#include "base/check.h"

namespace muster {
namespace {

constexpr std::size_t kColumnsMax = 64;  // the bits of Ring::present

bool belongs(const ReadingInfo& info, DeviceKind kind) {
  return (info.scope == ReadingScope::Gpu) != (kind == DeviceKind::Cpu);
}

}  // namespace

DeviceHistory::DeviceHistory(DeviceKind kind, const std::array<Duration, kTierCount>& periods,
                             Duration length) {
  for (std::size_t tier = 0; tier < kTierCount; ++tier) {
    if (length <= Duration::zero()) continue;
    auto& ring = rings_[tier];
    const auto rows = static_cast<std::size_t>(length / periods[tier]) + 1;
    for (const auto& info : reading_table()) {
      if (static_cast<std::size_t>(info.tier) != tier || !belongs(info, kind)) continue;
      auto& column = ring.columns.emplace_back();
      column.reading = info.reading;
      if (info.type == ReadingType::Counter) {
        column.counters.resize(rows);
      } else {
        column.gauges.resize(rows);
      }
    }
    MUSTER_CHECK(ring.columns.size() <= kColumnsMax);
    if (ring.columns.empty()) continue;
    ring.times_ns.resize(rows);
    ring.present.resize(rows);
  }
}

void DeviceHistory::add(const DeviceSample& sample) {
  for (std::size_t tier = 0; tier < kTierCount; ++tier) {
    if (sample.tiers.test(tier) && !rings_[tier].columns.empty()) add_row(rings_[tier], sample);
  }
}

void DeviceHistory::add_row(Ring& ring, const DeviceSample& sample) {
  const auto row = ring.next;
  ring.next = (ring.next + 1) % ring.times_ns.size();
  ring.count = std::min(ring.count + 1, ring.times_ns.size());
  ring.times_ns[row] = sample.at.time_since_epoch().count();
  ring.present[row] = 0;
  for (std::size_t i = 0; i < ring.columns.size(); ++i) {
    auto& column = ring.columns[i];
    const auto value = sample.readings.get(column.reading);
    if (!value) continue;
    ring.present[row] |= std::uint64_t{1} << i;
    if (column.counters.empty()) {
      column.gauges[row] = static_cast<float>(*value);
    } else {
      column.counters[row] = *value;
    }
  }
}

std::vector<HistoryPoint> DeviceHistory::points(Reading reading, TimePoint since) const {
  const auto& ring = rings_[static_cast<std::size_t>(reading_info(reading).tier)];
  const auto column = std::ranges::find(ring.columns, reading, &Column::reading);
  std::vector<HistoryPoint> points;
  if (column == ring.columns.end()) return points;
  const auto bit = std::uint64_t{1} << (column - ring.columns.begin());
  const auto rows = ring.times_ns.size();
  for (std::size_t i = 0; i < ring.count; ++i) {
    const auto row = (ring.next + rows - ring.count + i) % rows;
    const TimePoint at{Duration(ring.times_ns[row])};
    if (at < since || (ring.present[row] & bit) == 0) continue;
    points.push_back(
        {at, column->counters.empty() ? double{column->gauges[row]} : column->counters[row]});
  }
  return points;
}

}  // namespace muster

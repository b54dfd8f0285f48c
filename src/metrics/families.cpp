// Names, types and help of all metrics. docs/metrics.md is compared with it by a test.

#include "metrics/families.h"

#include <algorithm>

namespace muster {
namespace {

constexpr std::array<const ComputedFamily*, 19> kComputed{
    &kBuildInfo,     &kMachineInfo, &kGpuExpected, &kGpuInfo,       &kGpuUp,
    &kXidErrors,     &kXidLast,     &kHealthState, &kProcessMemory, &kLastSuccess,
    &kReadingErrors, &kTicks,       &kMissedTicks, &kCalls,         &kCallSeconds,
    &kCallErrors,    &kRestarts,    &kCpuSeconds,  &kResidentBytes,
};

std::vector<ReadingFamily> group_readings() {
  std::vector<ReadingFamily> families;
  for (const ReadingInfo& info : reading_table()) {
    auto family = std::find_if(families.begin(), families.end(), [&](const ReadingFamily& known) {
      return known.name == info.family;
    });
    if (family == families.end()) {
      family = families.insert(families.end(), {info.family, info.type, info.scope, {}});
    }
    family->readings.push_back(info.reading);
  }
  return families;
}

}  // namespace

std::string_view metric_type_name(MetricType type) {
  switch (type) {
    case MetricType::Gauge:
      return "gauge";
    case MetricType::Counter:
      return "counter";
    case MetricType::Histogram:
      return "histogram";
  }
  return "untyped";
}

std::span<const ComputedFamily* const> computed_families() { return kComputed; }

const std::vector<ReadingFamily>& reading_families() {
  static const auto families = group_readings();
  return families;
}

}  // namespace muster

// Least and most of each column, and not every so many points: a sample in a thousand may be the
// one that matters.
#include "report/thinning.h"

#include <algorithm>
#include <cmath>

namespace muster {

std::vector<ColumnRange> column_ranges(std::span<const PlotPoint> points, double x_low,
                                       double x_high, std::size_t column_count) {
  const double width = (x_high - x_low) / static_cast<double>(column_count);
  const bool has_width = std::isfinite(width) && width > 0;
  const auto column_of = [&](double x) {
    const double at = has_width ? (x - x_low) / width : 0;
    const double last = static_cast<double>(column_count - 1);
    return static_cast<std::size_t>(at > 0 ? std::min(at, last) : 0);  // not above 0 for a NaN
  };
  std::vector<std::vector<double>> columns(column_count);
  for (const auto& point : points) columns[column_of(point.x)].push_back(point.y);
  std::vector<ColumnRange> ranges;
  for (std::size_t i = 0; i < column_count; ++i) {
    auto& values = columns[i];
    if (values.empty()) continue;
    const auto [low, high] = std::ranges::minmax(values);
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::ranges::nth_element(values, middle);
    ranges.push_back({.x = has_width ? x_low + (static_cast<double>(i) + 0.5) * width : x_low,
                      .low = low,
                      .median = *middle,
                      .high = high,
                      .count = values.size()});
  }
  return ranges;
}

}  // namespace muster

#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace muster {

/// A point in the units of a plot's axes.
struct PlotPoint {
  double x = 0;
  double y = 0;
};

/// What lies in one column of a plot.
struct ColumnRange {
  double x = 0;  // its middle
  double low = 0;
  double median = 0;  // the lower one of an even number
  double high = 0;
  std::size_t count = 0;  // of points
};

/// Cuts the x axis into `column_count` columns and gives those that have a point, from left to
/// right, with their least and their most: however many points there are, none that stands out is
/// lost. What lies outside belongs to the first or the last column.
///
/// points: in any order. Cost: linear. Threads: pure.
std::vector<ColumnRange> column_ranges(std::span<const PlotPoint> points, double x_low,
                                       double x_high, std::size_t column_count);

}  // namespace muster

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace muster {

enum class AxisScale : std::uint8_t { Linear, Log };

/// What one side of a plot shows. `high` is above `low`; on a log scale both are above 0.
struct PlotAxis {
  AxisScale scale = AxisScale::Linear;
  double low = 0;
  double high = 1;

  /// 0 at `low`, 1 at `high`; what lies outside is at the nearer end. Threads: pure.
  double place(double value) const;
};

struct AxisTick {
  double value = 0;
  std::string label = {};
};

/// The values that an axis is to show.
struct AxisExtent {
  double least_above_0 = std::numeric_limits<double>::infinity();
  double most = 0;

  void add(double value) {
    if (value > 0) least_above_0 = std::min(least_above_0, value);
    most = std::max(most, value);
  }
};

/// An axis for values from `least`, the least that is above 0, to `most`: by logarithms where they
/// span more than a factor of 20, since the lower ones would be one line otherwise; else from 0.
/// Both ends leave some room. Threads: pure.
PlotAxis axis_for(double least, double most);

/// Ticks at 1, 2 or 5 times a power of ten, at most `count_most` + 1; on a log scale of more than
/// two decades at powers of ten alone. Threads: pure.
std::vector<AxisTick> ticks_of(const PlotAxis& axis, std::size_t count_most);

}  // namespace muster

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/axis.h"
#include "report/thinning.h"

namespace muster {

/// Lines that a plot tells apart, by colour, dashes and the shape of their marks. More go into
/// another plot.
inline constexpr std::size_t kPlotSeriesMost = 8;

/// Columns into which a plot cuts its samples: about one for each pixel of a large screen's plot.
inline constexpr std::size_t kPlotColumns = 300;

/// What stands around a plot.
struct PlotLabels {
  std::string id;           // of letters, digits and '-', the only one of its page
  std::string title;        // text
  std::string description;  // text: what the plot shows, for those who cannot see it
  std::string x = {};       // text: "seconds from the start"
  std::string y = {};       // text: "ms"
};

/// A plot as an inline SVG of 360 by 240 units, which is as wide as a phone: its letters have a
/// size that can be read there. Its colours are those of the page's style sheet.
///
/// Whatever is added is drawn within the axes, what lies outside at their ends. Threads: not
/// thread-safe.
class SvgPlot {
 public:
  SvgPlot(PlotLabels labels, const PlotAxis& x, const PlotAxis& y);

  /// In the place of the axis' own.
  void set_x_ticks(std::vector<AxisTick> ticks) { x_ticks_ = std::move(ticks); }

  /// A part of the x axis. kind: "warm" or "counted", a class of the style sheet.
  void add_band(double from, double to, std::string_view kind);
  /// A y that is no number ends a stretch.
  void add_line(std::span<const PlotPoint> points, std::size_t series);
  /// Least to most of each column.
  void add_ranges(std::span<const ColumnRange> columns, std::size_t series);
  /// From one end of an interval to the other.
  void add_interval(double x, double low, double high, std::size_t series);
  /// is_hollow: it is not to be trusted.
  void add_mark(const PlotPoint& at, std::size_t series, bool is_hollow);
  /// Requests that failed, along the upper edge.
  void add_failures(std::span<const ColumnRange> columns);

  std::string svg() const;

 private:
  double across(double x) const;
  double down(double y) const;

  const PlotLabels labels_;
  const PlotAxis x_;
  const PlotAxis y_;
  std::vector<AxisTick> x_ticks_;
  std::string bands_;
  std::string drawn_;
};

/// A line of a legend.
struct LegendEntry {
  std::size_t series = 0;
  std::string html = {};  // what the line is
};

/// A plot with its caption and its legend. caption: HTML. Threads: pure.
std::string figure_html(const SvgPlot& plot, std::string_view caption,
                        std::span<const LegendEntry> legend);

}  // namespace muster

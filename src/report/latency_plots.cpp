// The two plots of latencies. Both are thinned by columns that keep their least and their most, so
// a slow answer stays to be seen among a million.
#include "report/latency_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "bench/result/figure_text.h"
#include "report/axis.h"
#include "report/html.h"
#include "report/svg_plot.h"
#include "report/thinning.h"

namespace muster {
namespace {

constexpr double kToMs = 1e3;

// Where a percentile stands: 0 for the least, 1 for the 90th, 2 for the 99th, …
double place_of_share(double share) { return -std::log10(1 - share); }

std::vector<AxisTick> percentile_ticks(double place_most) {
  std::vector<AxisTick> ticks{{.value = 0, .label = "0"},
                              {.value = place_of_share(0.5), .label = "50"}};
  constexpr std::array<std::string_view, 6> kNines{"90",    "99",     "99.9",
                                                   "99.99", "99.999", "99.9999"};
  for (std::size_t i = 0; i < kNines.size(); ++i) {
    const auto place = static_cast<double>(i + 1);
    if (place <= place_most) ticks.push_back({.value = place, .label = std::string(kNines[i])});
  }
  return ticks;
}

// The sample of rank i of n stands in the middle of its share, so that the largest has a place.
std::vector<PlotPoint> percentile_points(std::vector<double> latencies) {
  std::ranges::sort(latencies);
  std::vector<PlotPoint> points;
  points.reserve(latencies.size());
  const auto count = static_cast<double>(latencies.size());
  for (std::size_t i = 0; i < latencies.size(); ++i) {
    const double share = (static_cast<double>(i) + 0.5) / count;
    points.push_back({.x = place_of_share(share), .y = latencies[i] * kToMs});
  }
  return points;
}

// Percentiles only rise, so least and most of a column are its first and its last.
std::vector<PlotPoint> thinned_line(std::span<const PlotPoint> points, double place_most) {
  std::vector<PlotPoint> line;
  for (const auto& column : column_ranges(points, 0, place_most, kPlotColumns)) {
    line.push_back({.x = column.x, .y = column.low});
    if (column.high > column.low) line.push_back({.x = column.x, .y = column.high});
  }
  return line;
}

std::string y_label(const PlotAxis& axis) {
  return axis.scale == AxisScale::Log ? "latency, ms (log scale)" : "latency, ms";
}

void add_intervals(SvgPlot& plot, const Distribution& distribution, std::size_t series) {
  for (const auto& one : distribution.percentiles) {
    if (!one.estimate || !one.estimate->low || !one.estimate->high) continue;
    plot.add_interval(place_of_share(one.share), *one.estimate->low * kToMs,
                      *one.estimate->high * kToMs, series);
  }
}

// What of a load's samples is drawn over time.
struct SamplesOverTime {
  std::vector<PlotPoint> answered;  // ms
  std::vector<PlotPoint> failed;    // y has no meaning
  double end = 0;                   // seconds
  double warm_up = 0;               // the longest
};

SamplesOverTime samples_over_time(const ReportLoad& load) {
  SamplesOverTime all;
  for (const auto& trial : load.trials) {
    all.warm_up = std::max(all.warm_up, trial.warm_up_seconds);
    for (const auto& sample : trial.samples) {
      all.end = std::max(all.end, sample.at);
      if (!sample.is_answered || !sample.latency) {
        all.failed.push_back({.x = sample.at, .y = 0});
      } else {
        all.answered.push_back({.x = sample.at, .y = *sample.latency * kToMs});
      }
    }
  }
  return all;
}

std::string over_time_description(const SamplesOverTime& all, const AxisExtent& extent) {
  auto text = fmt::format("{} answers", with_thousands(all.answered.size()));
  if (!all.answered.empty()) {
    text +=
        fmt::format(", from {} to {} ms",
                    std::isfinite(extent.least_above_0) ? figure_text(extent.least_above_0) : "0",
                    figure_text(extent.most));
  }
  return text + fmt::format("; {} failed; the first {} s are the warm-up",
                            with_thousands(all.failed.size()), figure_text(all.warm_up));
}

}  // namespace

std::vector<double> counted_latencies(std::span<const ReportTrial> trials) {
  std::vector<double> latencies;
  for (const auto& trial : trials) {
    for (const auto& sample : trial.samples) {
      const bool counts =
          sample.is_answered && sample.latency && sample.at >= trial.warm_up_seconds;
      if (counts) latencies.push_back(*sample.latency);
    }
  }
  return latencies;
}

std::string percentile_figure(const std::string& id, std::string_view caption,
                              std::span<const LatencyLine> lines) {
  AxisExtent extent;
  std::size_t count_most = 0;
  for (const auto& line : lines) {
    count_most = std::max(count_most, line.latencies.size());
    for (const double latency : line.latencies) extent.add(latency * kToMs);
  }
  if (count_most == 0) return {};
  const double place_most = place_of_share(1 - 0.5 / static_cast<double>(count_most)) * 1.02;
  const auto y = axis_for(extent.least_above_0, extent.most);
  SvgPlot plot({.id = id,
                .title = "Latency by percentile",
                .description = fmt::format(
                    "{} lines, of up to {} answers; the largest latency is {} ms. The tables have "
                    "the percentiles with their intervals.",
                    lines.size(), with_thousands(count_most), figure_text(extent.most)),
                .x = "percentile",
                .y = y_label(y)},
               {.scale = AxisScale::Linear, .low = 0, .high = place_most}, y);
  plot.set_x_ticks(percentile_ticks(place_most));
  std::vector<LegendEntry> legend;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto points = percentile_points(lines[i].latencies);
    plot.add_line(thinned_line(points, place_most), i);
    if (!points.empty()) plot.add_mark(points.back(), i, false);
    if (lines[i].intervals != nullptr) add_intervals(plot, *lines[i].intervals, i);
    legend.push_back({.series = i,
                      .html = fmt::format(
                          "{} ({})", lines[i].name,
                          points.empty() ? "no answers counted" : with_thousands(points.size()))});
  }
  return figure_html(plot, caption, legend);
}

std::string latency_over_time_figure(const std::string& id, const ReportLoad& load) {
  const auto all = samples_over_time(load);
  if (all.answered.empty() && all.failed.empty()) return {};
  AxisExtent extent;
  for (const auto& point : all.answered) extent.add(point.y);
  const auto y = axis_for(extent.least_above_0, extent.most);
  const double end = all.end > 0 ? all.end : 1;
  SvgPlot plot({.id = id,
                .title = "Latency over time",
                .description = over_time_description(all, extent),
                .x = load.trials.size() > 1 ? "seconds from the start of each trial"
                                            : "seconds from the start",
                .y = y_label(y)},
               {.scale = AxisScale::Linear, .low = 0, .high = end}, y);
  if (all.warm_up > 0) plot.add_band(0, std::min(all.warm_up, end), "warm");
  const auto columns = column_ranges(all.answered, 0, end, kPlotColumns);
  plot.add_ranges(columns, 0);
  std::vector<PlotPoint> medians;
  for (const auto& column : columns) medians.push_back({.x = column.x, .y = column.median});
  plot.add_line(medians, 1);
  plot.add_failures(column_ranges(all.failed, 0, end, kPlotColumns));
  auto caption = std::string("Latency over time");
  if (load.trials.size() > 1) caption += fmt::format(", all {} trials", load.trials.size());
  caption += "<span class=\"muted\">: least to most, and median, of each moment";
  if (all.warm_up > 0) caption += "; shaded: the warm-up, not counted";
  if (!all.failed.empty()) caption += "; marks above: failed requests";
  return figure_html(plot, caption + "</span>",
                     std::vector<LegendEntry>{{.series = 0, .html = "least to most"},
                                              {.series = 1, .html = "median"}});
}

}  // namespace muster

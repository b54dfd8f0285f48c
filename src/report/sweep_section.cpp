// Throughput and latency against what was swept, side by side: more throughput is bought with
// latency, and where, one sees only in both.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "report/axis.h"
#include "report/html.h"
#include "report/sections.h"
#include "report/svg_plot.h"
#include "report/sweep_lines.h"

namespace muster {
namespace {

constexpr double kToMs = 1e3;

// Which figure of a spot a plot shows, in the unit of its axis.
struct SweepFigure {
  std::string title;
  std::string unit;
  double factor = 1;
  std::optional<Estimate> SweepSpot::*figure = nullptr;
};

void draw_spot(SvgPlot& plot, const SweepSpot& spot, const Estimate& estimate, double factor,
               std::size_t series) {
  if (estimate.low && estimate.high) {
    plot.add_interval(spot.x, *estimate.low * factor, *estimate.high * factor, series);
  }
  plot.add_mark({.x = spot.x, .y = estimate.value * factor}, series, !spot.is_trusted);
}

std::string sweep_figure(const std::string& id, const SweepLines& sweep,
                         std::span<const SweepLine> lines, const SweepFigure& what) {
  AxisExtent x_range;
  AxisExtent y_range;
  for (const auto& line : lines) {
    for (const auto& spot : line.spots) {
      const auto& estimate = spot.*what.figure;
      x_range.add(spot.x);
      if (!estimate) continue;
      y_range.add(estimate->value * what.factor);
      if (estimate->high) y_range.add(*estimate->high * what.factor);
    }
  }
  const auto x = axis_for(x_range.least_above_0, x_range.most);
  const auto y = axis_for(y_range.least_above_0, y_range.most);
  const auto scale_words = [](const PlotAxis& axis) {
    return axis.scale == AxisScale::Log ? " (log scale)" : "";
  };
  SvgPlot plot({.id = id,
                .title = fmt::format("{} by {}", what.title, sweep.axis),
                .description = fmt::format("{} lines; the tables have the numbers. Bars "
                                           "are 95 % intervals.",
                                           lines.size()),
                .x = sweep.axis + scale_words(x),
                .y = what.unit + scale_words(y)},
               x, y);
  std::vector<LegendEntry> legend;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::vector<PlotPoint> points;
    for (const auto& spot : lines[i].spots) {
      const auto& estimate = spot.*what.figure;
      if (!estimate) continue;
      points.push_back({.x = spot.x, .y = estimate->value * what.factor});
      draw_spot(plot, spot, *estimate, what.factor, i);
    }
    plot.add_line(points, i);
    const auto name = lines[i].name.empty() ? std::string("all points") : html_name(lines[i].name);
    legend.push_back({.series = i, .html = points.empty() ? name + ": not measured" : name});
  }
  return figure_html(plot,
                     fmt::format("{} by {}<span class=\"muted\">: bars are 95 % intervals; hollow "
                                 "marks are INVALID or NOT steady</span>",
                                 what.title, html_escaped(sweep.axis)),
                     legend);
}

// The percentile farthest in the tail that some point has enough samples for.
SweepFigure latency_figure(std::span<const SweepLine> lines) {
  const auto figure = [](std::string_view percentile,
                         std::optional<Estimate> SweepSpot::*member) -> SweepFigure {
    return {.title = fmt::format("Latency {}", percentile),
            .unit = fmt::format("latency {}, ms", percentile),
            .factor = kToMs,
            .figure = member};
  };
  const auto is_known = [&](std::optional<Estimate> SweepSpot::*member) {
    return std::ranges::any_of(lines, [&](const SweepLine& line) {
      return std::ranges::any_of(line.spots,
                                 [&](const SweepSpot& spot) { return (spot.*member).has_value(); });
    });
  };
  if (is_known(&SweepSpot::latency_p99)) return figure("p99", &SweepSpot::latency_p99);
  if (is_known(&SweepSpot::latency_p95)) return figure("p95", &SweepSpot::latency_p95);
  return figure("p50", &SweepSpot::latency_p50);
}

std::string sweep_html(const std::string& id, const SweepLines& sweep) {
  const SweepFigure throughput{
      .title = "Throughput", .unit = sweep.unit, .factor = 1, .figure = &SweepSpot::throughput};
  const auto latency = latency_figure(sweep.lines);
  std::string html = "<div class=\"plots\">\n";
  const std::span<const SweepLine> lines(sweep.lines);
  for (std::size_t begin = 0; begin < lines.size(); begin += kPlotSeriesMost) {
    const auto part = lines.subspan(begin, std::min(kPlotSeriesMost, lines.size() - begin));
    html += sweep_figure(fmt::format("{}-{}t", id, begin), sweep, part, throughput);
    html += sweep_figure(fmt::format("{}-{}l", id, begin), sweep, part, latency);
  }
  return html + "</div>\n";
}

}  // namespace

std::string sweep_section(std::span<const ReportResult> results) {
  std::string html;
  std::size_t count = 0;
  for (const auto& sweep : sweep_lines(results)) {
    html += sweep_html(fmt::format("sweep{}", count++), sweep);
  }
  return html.empty() ? html : "<section>\n<h2>Sweep</h2>\n" + html + "</section>\n";
}

}  // namespace muster

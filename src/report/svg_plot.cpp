// SVG that needs no script and no file beside it. Coordinates have one decimal: a tenth of a unit
// is less than a pixel, and a plot of 300 columns stays below ten kilobytes.
#include "report/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "report/html.h"

namespace muster {
namespace {

constexpr double kWidth = 360;
constexpr double kHeight = 240;
constexpr double kLeft = 46;
constexpr double kRight = 340;  // half of a label stands beyond it
constexpr double kTop = 20;
constexpr double kBottom = 202;
constexpr double kFailureTop = 14;  // of the marks above the plot
constexpr double kFailureBottom = 19;
constexpr double kMarkSize = 3.2;
constexpr std::size_t kXTicks = 6;
constexpr std::size_t kYTicks = 6;

// "12.3", "12": a coordinate.
std::string unit_text(double units) {
  auto text = fmt::format("{:.1f}", units);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::size_t series_class(std::size_t series) { return series % kPlotSeriesMost; }

// Square, circle, triangle, diamond: whoever sees no colours knows the lines by these.
std::string mark_path(double x, double y, std::size_t series) {
  const auto at = [](double left, double top) { return unit_text(left) + " " + unit_text(top); };
  const double r = kMarkSize;
  switch (series % 4) {
    case 0:
      return fmt::format("M{}a{} {} 0 1 0 {} 0a{} {} 0 1 0 -{} 0Z", at(x - r, y), r, r, 2 * r, r, r,
                         2 * r);
    case 1:
      return fmt::format("M{}h{}v{}h-{}Z", at(x - r, y - r), 2 * r, 2 * r, 2 * r);
    case 2:
      return fmt::format("M{}L{}L{}Z", at(x, y - r), at(x + r, y + r), at(x - r, y + r));
    default:
      return fmt::format("M{}L{}L{}L{}Z", at(x, y - r), at(x + r, y), at(x, y + r), at(x - r, y));
  }
}

std::string text_html(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", unit_text(x),
                     unit_text(y), anchor, html_escaped(text));
}

std::string grid_html(double x1, double y1, double x2, double y2) {
  return fmt::format("M{} {}L{} {}", unit_text(x1), unit_text(y1), unit_text(x2), unit_text(y2));
}

}  // namespace

SvgPlot::SvgPlot(PlotLabels labels, const PlotAxis& x, const PlotAxis& y)
    : labels_(std::move(labels)), x_(x), y_(y), x_ticks_(ticks_of(x, kXTicks)) {}

double SvgPlot::across(double x) const { return kLeft + x_.place(x) * (kRight - kLeft); }

double SvgPlot::down(double y) const { return kBottom - y_.place(y) * (kBottom - kTop); }

void SvgPlot::add_band(double from, double to, std::string_view kind) {
  const double left = across(from);
  bands_ += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", kind,
                        unit_text(left), unit_text(kTop),
                        unit_text(std::max(across(to) - left, 0.0)), unit_text(kBottom - kTop));
}

void SvgPlot::add_line(std::span<const PlotPoint> points, std::size_t series) {
  std::string path;
  std::size_t stretch = 0;  // points since the last gap
  // A path without length is drawn as a dot, by its round ends.
  const auto close_stretch = [&] {
    if (stretch == 1) path += "h0";
    stretch = 0;
  };
  for (const auto& point : points) {
    if (!std::isfinite(point.y)) {
      close_stretch();
      continue;
    }
    path += stretch > 0 ? 'L' : 'M';
    path += unit_text(across(point.x)) + " " + unit_text(down(point.y));
    ++stretch;
  }
  close_stretch();
  if (path.empty()) return;
  drawn_ += fmt::format("<path class=\"line s{}\" d=\"{}\"/>\n", series_class(series), path);
}

void SvgPlot::add_ranges(std::span<const ColumnRange> columns, std::size_t series) {
  std::string path;
  for (const auto& column : columns) {
    const auto top = unit_text(down(column.high));
    const auto bottom = unit_text(down(column.low));
    path += fmt::format("M{} {}", unit_text(across(column.x)), top);
    path += top == bottom ? std::string("h0") : "V" + bottom;
  }
  if (path.empty()) return;
  drawn_ += fmt::format("<path class=\"range s{}\" d=\"{}\"/>\n", series_class(series), path);
}

void SvgPlot::add_interval(double x, double low, double high, std::size_t series) {
  constexpr double kCap = 2.5;
  const double at = across(x);
  const double top = down(high);
  const double bottom = down(low);
  const auto path = grid_html(at, top, at, bottom) + grid_html(at - kCap, top, at + kCap, top) +
                    grid_html(at - kCap, bottom, at + kCap, bottom);
  drawn_ += fmt::format("<path class=\"interval s{}\" d=\"{}\"/>\n", series_class(series), path);
}

void SvgPlot::add_mark(const PlotPoint& at, std::size_t series, bool is_hollow) {
  drawn_ += fmt::format("<path class=\"mark s{}{}\" d=\"{}\"/>\n", series_class(series),
                        is_hollow ? " hollow" : "", mark_path(across(at.x), down(at.y), series));
}

void SvgPlot::add_failures(std::span<const ColumnRange> columns) {
  std::string path;
  for (const auto& column : columns) {
    const double at = across(column.x);
    path += grid_html(at, kFailureTop, at, kFailureBottom);
  }
  if (!path.empty()) drawn_ += fmt::format("<path class=\"failed\" d=\"{}\"/>\n", path);
}

std::string SvgPlot::svg() const {
  std::string grid;
  std::string texts;
  for (const auto& tick : ticks_of(y_, kYTicks)) {
    const double y = down(tick.value);
    grid += grid_html(kLeft, y, kRight, y);
    texts += text_html(kLeft - 4, y + 3.5, "end", tick.label);
  }
  for (const auto& tick : x_ticks_) {
    const double x = across(tick.value);
    grid += grid_html(x, kBottom, x, kBottom + 4);
    texts += text_html(x, kBottom + 15, "middle", tick.label);
  }
  texts += text_html(kLeft, 10, "start", labels_.y);
  texts += text_html((kLeft + kRight) / 2, kHeight - 6, "middle", labels_.x);
  return fmt::format(
      "<svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"{}-t {}-d\">\n"
      "<title id=\"{}-t\">{}</title>\n<desc id=\"{}-d\">{}</desc>\n{}<path class=\"grid\" "
      "d=\"{}\"/>\n<path class=\"axis\" d=\"M{} {}V{}H{}\"/>\n{}{}</svg>\n",
      unit_text(kWidth), unit_text(kHeight), labels_.id, labels_.id, labels_.id,
      html_escaped(labels_.title), labels_.id, html_escaped(labels_.description), bands_, grid,
      unit_text(kLeft), unit_text(kTop), unit_text(kBottom), unit_text(kRight), texts, drawn_);
}

std::string figure_html(const SvgPlot& plot, std::string_view caption,
                        std::span<const LegendEntry> legend) {
  auto html = fmt::format("<figure>\n<figcaption>{}</figcaption>\n{}", caption, plot.svg());
  if (!legend.empty()) html += "<ul class=\"legend\">\n";
  for (const auto& entry : legend) {
    html += fmt::format(
        "<li><svg class=\"key\" viewBox=\"0 0 30 10\" aria-hidden=\"true\"><path class=\"line "
        "s{}\" d=\"M0 5H30\"/><path class=\"mark s{}\" d=\"{}\"/></svg>{}</li>\n",
        series_class(entry.series), series_class(entry.series), mark_path(15, 5, entry.series),
        entry.html);
  }
  if (!legend.empty()) html += "</ul>\n";
  return html + "</figure>\n";
}

}  // namespace muster

// Power beside the phases of the trials, and the joules that a point's record states. Where nothing
// was watched, the reason stands where the plot would be.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "bench/result/figure_text.h"
#include "report/axis.h"
#include "report/html.h"
#include "report/sections.h"
#include "report/svg_plot.h"

namespace muster {
namespace {

constexpr std::size_t kTrialsDrawn = 100;  // whose phases are shaded

struct Phase {
  double begin = 0;  // seconds since 1970
  double counted = 0;
  double end = 0;
};

std::vector<Phase> phases_of(const ReportResult& result) {
  std::vector<Phase> phases;
  for (const auto& load : result.loads) {
    for (const auto& trial : load.trials) {
      if (!trial.started_at) continue;
      const double counted = *trial.started_at + trial.warm_up_seconds;
      phases.push_back(
          {.begin = *trial.started_at, .counted = counted, .end = counted + trial.counted_seconds});
    }
  }
  std::ranges::sort(phases, {}, &Phase::begin);
  return phases;
}

bool is_counted(const std::vector<Phase>& phases, double at) {
  return std::ranges::any_of(
      phases, [at](const Phase& phase) { return at >= phase.counted && at <= phase.end; });
}

// Watts while requests were counted.
std::string power_table(const PowerRecording& recording, const std::vector<Phase>& phases) {
  HtmlTable table{.caption = "Watts while requests were counted",
                  .columns = {"device", "readings", "least", "mean", "most"}};
  for (const auto& line : recording.lines) {
    std::size_t count = 0;
    double sum = 0;
    double least = 0;
    double most = 0;
    for (const auto& point : line.points) {
      if (!std::isfinite(point.y) || !is_counted(phases, point.x)) continue;
      least = count == 0 ? point.y : std::min(least, point.y);
      most = std::max(most, point.y);
      sum += point.y;
      ++count;
    }
    std::vector<std::string> row{html_name(line.device)};
    if (count == 0) {
      row.insert(
          row.end(),
          {"0", "<span class=\"none\">not measured: no reading came meanwhile</span>", "", ""});
    } else {
      row.insert(row.end(), {fmt::format("{}", count), figure_text(least),
                             figure_text(sum / static_cast<double>(count)), figure_text(most)});
    }
    table.rows.push_back(std::move(row));
  }
  return table.html();
}

// Thinned as samples are: least and most of each column, in the order of time; a gap stays one.
std::vector<PlotPoint> drawn_points(const PowerLine& line, double origin, double end) {
  std::vector<PlotPoint> drawn;
  std::vector<PlotPoint> stretch;
  const auto close_stretch = [&] {
    for (const auto& column : column_ranges(stretch, 0, end, kPlotColumns)) {
      drawn.push_back({.x = column.x, .y = column.low});
      if (column.high > column.low) drawn.push_back({.x = column.x, .y = column.high});
    }
    if (!drawn.empty()) drawn.push_back({.x = end, .y = std::numeric_limits<double>::quiet_NaN()});
    stretch.clear();
  };
  for (const auto& point : line.points) {
    const double x = point.x - origin;
    if (x < 0 || x > end) continue;
    if (std::isfinite(point.y)) {
      stretch.push_back({.x = x, .y = point.y});
    } else if (!stretch.empty()) {
      close_stretch();
    }
  }
  if (!stretch.empty()) close_stretch();
  return drawn;
}

void add_phases(SvgPlot& plot, const std::vector<Phase>& phases, double origin) {
  if (phases.size() > kTrialsDrawn) return;
  for (const auto& phase : phases) {
    if (phase.counted > phase.begin) {
      plot.add_band(phase.begin - origin, phase.counted - origin, "warm");
    }
    plot.add_band(phase.counted - origin, phase.end - origin, "counted");
  }
}

std::string power_figure(const std::string& id, const PowerRecording& recording,
                         std::span<const PowerLine> lines, const std::vector<Phase>& phases) {
  constexpr double kAround = 2;  // seconds before the first trial and behind the last
  const double origin = phases.front().begin - kAround;
  double end = 0;
  for (const auto& phase : phases) end = std::max(end, phase.end - origin + kAround);
  double most = 0;
  for (const auto& line : lines) {
    for (const auto& point : line.points) {
      if (std::isfinite(point.y)) most = std::max(most, point.y);
    }
  }
  SvgPlot plot({.id = id,
                .title = "Power over time",
                .description = fmt::format(
                    "Watts of {} devices over {} s, at most {} W; the warm-up and the counted part "
                    "of each trial are shaded.",
                    lines.size(), figure_text(end), figure_text(most)),
                .x = "seconds; the first trial begins at 2",
                .y = "W"},
               {.scale = AxisScale::Linear, .low = 0, .high = end}, axis_for(0, most));
  add_phases(plot, phases, origin);
  std::vector<LegendEntry> legend;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    plot.add_line(drawn_points(lines[i], origin, end), i);
    legend.push_back({.series = i,
                      .html = html_name(lines[i].device) + " " + html_name(lines[i].model) +
                              (lines[i].is_of_counter ? ", by its energy counter" : "")});
  }
  auto caption = fmt::format(
      "Power over time<span class=\"muted\">, {}: red: warm-up; green: "
      "counted; else pauses",
      html_name(recording.name));
  if (phases.size() > kTrialsDrawn) {
    caption += fmt::format("; the phases of {} trials are too many to be drawn", phases.size());
  }
  return figure_html(plot, caption + "</span>", legend);
}

std::string recording_html(const std::string& id, const PowerRecording& recording,
                           const std::vector<Phase>& phases) {
  if (recording.lines.empty()) {
    return fmt::format(
        "<p class=\"none\">Power over time was not measured, because no device of {} "
        "told its power.</p>\n",
        html_name(recording.name));
  }
  std::string html = "<div class=\"plots\">\n";
  const std::span<const PowerLine> lines(recording.lines);
  for (std::size_t begin = 0; begin < lines.size(); begin += kPlotSeriesMost) {
    const auto count = std::min(kPlotSeriesMost, lines.size() - begin);
    html += power_figure(fmt::format("{}-{}", id, begin), recording, lines.subspan(begin, count),
                         phases);
  }
  return html + "</div>\n" + power_table(recording, phases);
}

std::string value_or_reason(const ReportRecord& record, std::string_view key,
                            std::string_view reason_key) {
  const auto found = record.energy.find(key);
  if (found != record.energy.end()) return figure_text(found->second);
  const auto reason = record.energy_words.find(reason_key);
  if (reason == record.energy_words.end()) return "<span class=\"none\">not measured</span>";
  return fmt::format("<span class=\"none\">not measured, because {}</span>",
                     html_escaped(cut_text(reason->second, 300)));
}

std::string energy_table(const ReportRecord& record) {
  HtmlTable table{
      .caption = "Energy of the point, warm-up included", .columns = {"", ""}, .has_words = true};
  auto joules = value_or_reason(record, "joules", "missing_reason");
  if (const auto error = record.energy.find("error_joules"); error != record.energy.end()) {
    joules += fmt::format(" ± {}", figure_text(error->second));
  }
  if (const auto method = record.energy_words.find("method"); method != record.energy_words.end()) {
    joules += fmt::format(" ({})", html_escaped(cut_text(method->second, 100)));
  }
  table.rows.push_back({"joules", joules});
  struct Row {
    std::string_view title;
    std::string_view key;
    std::string_view reason_key;
  };
  constexpr std::array kRows{
      Row{"joules a prompt", "joules_per_prompt", "missing_reason"},
      Row{"joules a token of a reply", "joules_per_output_token", "missing_reason"},
      Row{"grams of CO2", "emissions_g_co2eq", "emissions_missing_reason"}};
  for (const auto& row : kRows) {
    table.rows.push_back(
        {std::string(row.title), value_or_reason(record, row.key, row.reason_key)});
  }
  const auto counter = record.energy_words.find("counter_missing_reason");
  if (counter != record.energy_words.end()) {
    table.rows.push_back(
        {"not by the counter, because", html_escaped(cut_text(counter->second, 300))});
  }
  return table.html();
}

std::string range_text(const ReportRecord::Device& device, const std::string& key) {
  const auto mean = device.numbers.find(key);
  if (mean == device.numbers.end()) return "<span class=\"none\">not measured</span>";
  auto text = figure_text(mean->second);
  const auto least = device.numbers.find(key + "_min");
  const auto most = device.numbers.find(key + "_max");
  if (least == device.numbers.end() || most == device.numbers.end()) return text;
  return text + fmt::format("<span class=\"ci\">{} to {}</span>", figure_text(least->second),
                            figure_text(most->second));
}

std::string devices_table(const ReportRecord& record) {
  HtmlTable table{
      .caption = "Devices while requests were under way: mean, and least to most",
      .columns = {"device", "busy (%)", "memory (MB)", "temperature (°C)", "power (W)", "why not"}};
  for (const auto& device : record.devices) {
    const auto reason = device.words.find("missing_reason");
    const auto model = device.words.find("name");
    table.rows.push_back(
        {html_name(device.name) +
             (model == device.words.end() ? "" : " " + html_name(model->second)),
         range_text(device, "utilization_percent"), range_text(device, "memory_used_mb"),
         range_text(device, "temperature_c"), range_text(device, "power_draw_w"),
         reason == device.words.end() ? "" : html_escaped(cut_text(reason->second, 300))});
  }
  return table.html();
}

}  // namespace

std::string power_section(const std::string& id, const ReportResult& result,
                          std::span<const PowerRecording> recordings) {
  std::string html;
  const auto phases = phases_of(result);
  std::size_t count = 0;
  for (const auto& recording : recordings) {
    if (phases.empty()) break;
    html += recording_html(fmt::format("{}-{}", id, count++), recording, phases);
  }
  if (count == 0) {
    html +=
        result.record
            ? "<p class=\"none\">Power over time is not drawn, because no recording of this point "
              "was named: metrics.output_dir of `bench run` keeps them.</p>\n"
            : "<p class=\"none\">Power and energy were not measured, because this command watches "
              "no devices: `muster bench run` does, and a recording of `muster monitor --out` "
              "that is named beside the result is drawn.</p>\n";
  }
  if (result.record) html += energy_table(*result.record) + devices_table(*result.record);
  return fmt::format("<section>\n<h3>{}: power and energy</h3>\n{}</section>\n",
                     html_name(result.name), html);
}

}  // namespace muster

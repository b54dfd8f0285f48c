// The first thing that is read: the verdict of each result, then its loads in a row each. Points of
// a sweep have a table of their own, with what was swept in front.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/text.h"
#include "bench/result/figure_text.h"
#include "report/html.h"
#include "report/load_facts.h"
#include "report/sections.h"
#include "report/sweep_lines.h"

namespace muster {
namespace {

constexpr double kToMs = 1e3;
constexpr std::size_t kVerdictBytesMost = 600;
constexpr std::size_t kUnsteadyMost = 5;  // of a result; the table has them all

std::string verdict_html(const ReportResult& result) {
  const auto verdict = cut_text(verdict_of(result), kVerdictBytesMost);
  const bool is_bad = verdict.starts_with("INVALID") || verdict == "objectives missed" ||
                      verdict.starts_with("no rate");
  return fmt::format("<p class=\"{}\">{}: {}</p>\n", is_bad ? "alert" : "lead",
                     html_name(result.name), html_escaped(verdict));
}

// What is unsteady is said where its figures are read first, in letters as large.
std::string unsteady_html(const ReportResult& result) {
  std::string html;
  std::size_t count = 0;
  for (const auto& load : result.loads) {
    for (const auto& one : warnings_of(result, load)) {
      if (one.badge != "NOT steady" || ++count > kUnsteadyMost) continue;
      html += fmt::format("<p class=\"alert\">{}: {}</p>\n", html_name(load.name),
                          html_escaped(one.sentence));
    }
  }
  return html;
}

std::string failed_html(const ReportLoad& load) {
  const auto counts = counts_of(load);
  if (!counts) return "<span class=\"none\">not measured</span>";
  return fmt::format("{} of {}", with_thousands(counts->failed), with_thousands(counts->sent));
}

// A column of the table of points: a number of the record.
struct PointColumn {
  std::string_view title;
  bool is_energy = false;
  std::string_view key;
  double factor = 1;
  std::string_view figure = {};  // of the load, whose interval is shown
};
constexpr std::array kPointColumns{
    PointColumn{
        .title = "prompts/s", .key = "throughput_prompts_per_second", .figure = "throughput"},
    PointColumn{.title = "tokens/s",
                .key = "throughput_output_tokens_per_second",
                .figure = "token_throughput"},
    PointColumn{.title = "mean (ms)",
                .key = "avg_latency_seconds",
                .factor = kToMs,
                .figure = "latency_mean"},
    PointColumn{.title = "p50 (ms)",
                .key = "p50_latency_seconds",
                .factor = kToMs,
                .figure = "latency_p50"},
    PointColumn{.title = "p99 (ms)",
                .key = "p99_latency_seconds",
                .factor = kToMs,
                .figure = "latency_p99"},
    PointColumn{.title = "max (ms)", .key = "max_latency_seconds", .factor = kToMs},
    PointColumn{.title = "J/prompt", .is_energy = true, .key = "joules_per_prompt"},
    PointColumn{.title = "failed", .key = "failed_prompts"}};

const std::map<std::string, double, std::less<>>& numbers_of(const ReportResult& result,
                                                             const PointColumn& column) {
  return column.is_energy ? result.record->energy : result.record->summary;
}

// The figure with its interval, where the load has one.
std::optional<Estimate> point_estimate(const ReportResult& result, const PointColumn& column) {
  if (column.figure.empty() || result.loads.empty()) return std::nullopt;
  if (column.figure == "throughput") return prompts_per_second(result);
  return figure_of(result.loads.front(), column.figure);
}

std::string point_cell(const ReportResult& result, const PointColumn& column) {
  const auto& numbers = numbers_of(result, column);
  const auto found = numbers.find(column.key);
  if (found == numbers.end()) {
    const auto reason = result.record->energy_words.find("missing_reason");
    const bool has_reason = column.is_energy && reason != result.record->energy_words.end();
    return has_reason ? fmt::format("<span class=\"none\">not measured, because {}</span>",
                                    html_escaped(cut_text(reason->second, 200)))
                      : "<span class=\"none\">not measured</span>";
  }
  const auto estimate = point_estimate(result, column);
  if (estimate) return estimate_html(column.figure, *estimate);
  return column.key == "failed_prompts" ? fmt::format("{:.0f}", found->second)
                                        : figure_text(found->second * column.factor);
}

// How many points are not to be trusted, and the best of the others, as `bench run` ends.
std::string points_verdict(std::span<const ReportResult> results) {
  const ReportResult* best = nullptr;
  double most = -1;
  std::size_t count = 0;
  std::size_t untrusted = 0;
  for (const auto& result : results) {
    if (!result.record) continue;
    ++count;
    const bool is_trusted = std::ranges::all_of(result.loads, [&](const ReportLoad& load) {
      return is_to_be_trusted(warnings_of(result, load));
    });
    const auto rate = prompts_per_second(result);
    if (!is_trusted) ++untrusted;
    if (is_trusted && rate && rate->value > most) {
      most = rate->value;
      best = &result;
    }
  }
  std::string html;
  if (untrusted > 0) {
    html += fmt::format("<p class=\"alert\">{} of {} points are INVALID or NOT steady</p>\n",
                        untrusted, count);
  }
  if (best == nullptr) return html;
  return html + fmt::format("<p class=\"lead\">highest throughput: {} prompts/s, {}</p>\n",
                            figure_rate_text(most), html_name(best->name));
}

std::string point_badges(const ReportResult& result) {
  std::string html;
  for (const auto& load : result.loads) html += badges_html(warnings_of(result, load));
  return html;
}

}  // namespace

std::string summary_section(std::span<const ReportResult> results) {
  std::string html;
  HtmlTable table{
      .caption = "All loads",
      .columns = {"result", "load", "", "throughput (/s)", "p50 (ms)", "p99 (ms)", "failed"}};
  for (const auto& result : results) {
    if (!result.record) html += verdict_html(result) + unsteady_html(result);
    for (const auto& load : result.loads) {
      if (result.record) continue;
      table.rows.push_back({html_name(result.name), html_name(load.name),
                            badges_html(warnings_of(result, load)),
                            figure_html_of(load, "throughput"), figure_html_of(load, "latency_p50"),
                            figure_html_of(load, "latency_p99"), failed_html(load)});
    }
  }
  html += table.html();
  return html.empty() ? html : "<section>\n<h2>Verdict</h2>\n" + html + "</section>\n";
}

std::string points_section(std::span<const ReportResult> results) {
  const auto varying = varying_settings(results);
  std::vector<PointColumn> columns;
  for (const auto& column : kPointColumns) {
    // Tokens only where some point has them; joules always, because a reason stands for them.
    const bool is_there = std::ranges::any_of(results, [&](const ReportResult& result) {
      return result.record && numbers_of(result, column).contains(column.key);
    });
    if (is_there || column.is_energy) columns.push_back(column);
  }
  HtmlTable table{.caption = "Points of the sweep", .columns = {"point", ""}};
  for (const auto& name : varying) table.columns.push_back(html_name(name));
  for (const auto& column : columns) table.columns.push_back(html_escaped(column.title));
  for (const auto& result : results) {
    if (!result.record) continue;
    std::vector<std::string> row{html_name(result.name), point_badges(result)};
    for (const auto& name : varying) {
      const auto found = result.record->config.find(name);
      row.push_back(found == result.record->config.end() ? "-" : html_name(found->second));
    }
    for (const auto& column : columns) row.push_back(point_cell(result, column));
    table.rows.push_back(std::move(row));
  }
  const auto html = table.html();
  if (html.empty()) return {};
  return "<section>\n<h2>Points</h2>\n" + points_verdict(results) + html + "</section>\n";
}

}  // namespace muster

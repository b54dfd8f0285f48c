// Several results beside each other. The verdicts are those of `muster bench diff`, with its own
// functions; loads of one trial are shown without one, because a run varies more than its samples.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "bench/result/figure_text.h"
#include "report/html.h"
#include "report/latency_plots.h"
#include "report/load_facts.h"
#include "report/sections.h"
#include "report/svg_plot.h"

namespace muster {
namespace {

constexpr std::size_t kColumnsMost = 6;  // results in a table: more are not read side by side
constexpr std::size_t kTrialsLeast = 2;  // of a verdict
constexpr double kPerCent = 100;
constexpr std::size_t kNoteBytesMost = 300;

std::vector<const ReportResult*> compared_of(std::span<const ReportResult> results) {
  std::vector<const ReportResult*> compared;
  for (const auto& result : results) {
    if (result.is_compared) compared.push_back(&result);
  }
  return compared;
}

const ReportLoad* load_named(const ReportResult& result, const std::string& name) {
  const auto found = std::ranges::find(result.loads, name, &ReportLoad::name);
  return found == result.loads.end() ? nullptr : &*found;
}

// The names of all loads, in the order in which they first come.
std::vector<std::string> load_names(std::span<const ReportResult* const> results) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const auto* result : results) {
    for (const auto& load : result->loads) {
      if (seen.insert(load.name).second) names.push_back(load.name);
    }
  }
  return names;
}

std::string load_table(const std::string& name, std::span<const ReportResult* const> results) {
  HtmlTable table{.caption = cut_text(name, kNoteBytesMost), .columns = {"figure"}};
  std::vector<std::string> verdicts{"verdict"};
  for (const auto* result : results) {
    const auto* load = load_named(*result, name);
    table.columns.push_back(html_name(result->name));
    verdicts.push_back(load == nullptr ? "<span class=\"none\">no such load</span>"
                                       : badges_html(warnings_of(*result, *load)));
  }
  table.rows.push_back(std::move(verdicts));
  for (const auto& shown : shown_figures()) {
    const bool is_there = std::ranges::any_of(results, [&](const ReportResult* result) {
      const auto* load = load_named(*result, name);
      return load != nullptr && figure_of(*load, shown.figure).has_value();
    });
    if (!is_there) continue;
    std::vector<std::string> row{html_escaped(shown.title)};
    for (const auto* result : results) {
      const auto* load = load_named(*result, name);
      row.push_back(load == nullptr ? "" : figure_html_of(*load, shown.figure));
    }
    table.rows.push_back(std::move(row));
  }
  return table.html();
}

// Without loads of which a side has too few trials for a verdict; their names go into `left_out`.
ResultFigures judged_loads(const ResultFigures& one, const ResultFigures& other,
                           std::set<std::string>& left_out) {
  auto judged = one;
  const auto has_few = [](const ResultFigures::Point& point) {
    return point.trial_count < kTrialsLeast;
  };
  std::erase_if(judged.points, [&](const ResultFigures::Point& point) {
    const auto found = std::ranges::find(other.points, point.load, &ResultFigures::Point::load);
    const bool is_few = has_few(point) || (found != other.points.end() && has_few(*found));
    if (is_few) left_out.insert(point.load);
    return is_few;
  });
  return judged;
}

std::string difference_html(const FigureDifference& one) {
  if (!one.is_valid) return "<span class=\"bad\">none: INVALID</span>";
  const auto words = verdict_words(one);
  return one.is_worse ? "<span class=\"bad\">" + words + "</span>" : words;
}

std::string difference_table(const ReportResult& a, const ReportResult& b,
                             const ResultDifference& difference) {
  HtmlTable table{.caption = fmt::format("{} against {}", cut_text(b.name, kNoteBytesMost),
                                         cut_text(a.name, kNoteBytesMost)),
                  .columns = {"load", "figure", "A", "B", "B / A", "from", "to", "verdict on B"}};
  for (const auto& one : difference.figures) {
    table.rows.push_back({html_name(one.load), html_escaped(one.figure),
                          compared_text(one.figure, one.a), compared_text(one.figure, one.b),
                          html_escaped(ratio_text(one.comparison.ratio)),
                          html_escaped(ratio_text(one.comparison.low)),
                          html_escaped(ratio_text(one.comparison.high)), difference_html(one)});
  }
  return table.html();
}

std::string notes_html(const std::vector<std::string>& notes) {
  std::string html;
  for (const auto& note : notes) {
    html += fmt::format("<p>note: {}</p>\n", html_escaped(cut_text(note, kNoteBytesMost)));
  }
  return html;
}

std::string pair_html(const ReportResult& a, const ReportResult& b, const ComparisonRule& rule) {
  std::set<std::string> left_out;
  const auto side_a = judged_loads(a.figures, b.figures, left_out);
  const auto side_b = judged_loads(b.figures, a.figures, left_out);
  auto html = fmt::format("<h3>B: {}, A: {}</h3>\n", html_name(b.name), html_name(a.name));
  const auto difference = compare_results(side_a, side_b, rule);
  if (difference) {
    html += difference_table(a, b, *difference) + notes_html(difference->notes);
  } else {
    const auto why = left_out.empty() ? difference.error().message
                                      : std::string("no load has two trials on both sides");
    html += fmt::format("<p class=\"none\">Not compared, because {}.</p>\n", html_escaped(why));
    return html;
  }
  for (const auto& load : left_out) {
    html += fmt::format(
        "<p class=\"none\">{} is not compared, because a side has fewer than two trials.</p>\n",
        html_name(load));
  }
  return html;
}

}  // namespace

std::string side_by_side_section(std::span<const ReportResult> results) {
  const auto compared = compared_of(results);
  if (compared.size() < 2) return {};
  std::string html;
  const std::span<const ReportResult* const> all(compared);
  for (std::size_t begin = 0; begin < all.size(); begin += kColumnsMost) {
    const auto part = all.subspan(begin, std::min(kColumnsMost, all.size() - begin));
    for (const auto& name : load_names(part)) html += load_table(name, part);
  }
  return "<section>\n<h2>Side by side</h2>\n" + html + "</section>\n";
}

std::string latencies_section(std::span<const ReportResult> results) {
  const auto compared = compared_of(results);
  if (compared.size() < 2) return {};
  std::string html;
  std::size_t count = 0;
  for (const auto& name : load_names(compared)) {
    std::vector<LatencyLine> lines;
    for (const auto* result : compared) {
      const auto* load = load_named(*result, name);
      if (load == nullptr) continue;
      const bool is_trusted = is_to_be_trusted(warnings_of(*result, *load));
      lines.push_back({.name = html_name(result->name) +
                               (is_trusted ? "" : " <span class=\"bad\">not to be trusted</span>"),
                       .latencies = counted_latencies(load->trials)});
    }
    const std::span<const LatencyLine> all(lines);
    for (std::size_t begin = 0; begin < all.size(); begin += kPlotSeriesMost) {
      html += percentile_figure(fmt::format("latencies{}", count++),
                                "Latency by percentile: " + html_name(name),
                                all.subspan(begin, std::min(kPlotSeriesMost, all.size() - begin)));
    }
  }
  if (html.empty()) return {};
  return "<section>\n<h2>Latencies</h2>\n<div class=\"plots\">\n" + html + "</div>\n</section>\n";
}

std::string differences_section(std::span<const ReportResult> results, const ComparisonRule& rule) {
  const auto compared = compared_of(results);
  if (compared.size() < 2) return {};
  auto html = fmt::format(
      "<section>\n<h2>Verdicts of muster bench diff</h2>\n<p>The verdicts of a pair together are "
      "right at {:g} %; differences up to {:g} % count as none.</p>\n",
      kPerCent * rule.confidence, kPerCent * rule.tolerance);
  for (std::size_t i = 1; i < compared.size(); ++i) {
    html += pair_html(*compared.front(), *compared[i], rule);
  }
  return html + "</section>\n";
}

}  // namespace muster

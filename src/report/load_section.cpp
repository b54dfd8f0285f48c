// One load as the terminal shows it, and its two plots. Of one trial each kind of time has its row;
// of several their means, then each trial by itself, because no trial is better than another.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "bench/result/figure_text.h"
#include "report/html.h"
#include "report/latency_plots.h"
#include "report/load_facts.h"
#include "report/sections.h"
#include "report/svg_plot.h"

namespace muster {
namespace {

constexpr double kPerCent = 100;
constexpr std::size_t kProblemsMost = 8;
constexpr std::size_t kProblemBytesMost = 400;

std::string times_table(const ReportTrial& trial) {
  HtmlTable table{.caption = "Times in ms, with their 95 % intervals",
                  .columns = {"", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"}};
  for (const auto& times : trial.times) {
    const auto figure = times.figure + "_mean";  // of all these times alike
    std::vector<std::string> row{html_escaped(times.title),
                                 estimate_html(figure, times.distribution.mean)};
    for (const auto& one : times.distribution.percentiles) {
      row.push_back(one.estimate ? estimate_html(figure, *one.estimate)
                                 : "<span class=\"none\">too few samples</span>");
    }
    row.push_back(milliseconds_text(times.distribution.most));
    table.rows.push_back(std::move(row));
  }
  return table.html();
}

std::string over_trials_table(const ReportLoad& load) {
  HtmlTable table{.caption = "Means over the trials, with their 95 % intervals",
                  .columns = {"figure", "mean", "from", "to"}};
  for (const auto& shown : shown_figures()) {
    const auto found = load.over_trials.find(shown.figure);
    if (found == load.over_trials.end()) continue;
    const auto& mean = found->second;
    const auto end = [&](const std::optional<double>& value) {
      return value ? shown_value(shown.figure, *value) : std::string("?");
    };
    table.rows.push_back({html_escaped(shown.title), shown_value(shown.figure, mean.value),
                          end(mean.low), end(mean.high)});
  }
  return table.html();
}

std::string steady_words(const ReportTrial& trial) {
  if (!trial.is_steady) return "not judged";
  if (*trial.is_steady) return "steady";
  return fmt::format("<span class=\"bad\">NOT steady: {:+.0f} %</span>",
                     kPerCent * trial.drift.value_or(0));
}

std::string each_trial_table(const ReportResult& result, const ReportLoad& load) {
  HtmlTable table{.caption = "Each trial",
                  .columns = {"trial", "", "steady", "answers (/s)", "p50 (ms)", "p99 (ms)"}};
  std::size_t number = 0;
  for (const auto& trial : load.trials) {
    ReportLoad alone{.name = load.name, .trials = {}};
    alone.trials.push_back(trial);
    alone.trials.front().samples.clear();
    table.rows.push_back({fmt::format("{}", ++number), badges_html(warnings_of(result, alone)),
                          steady_words(trial), figure_html_of(alone, "throughput"),
                          figure_html_of(alone, "latency_p50"),
                          figure_html_of(alone, "latency_p99")});
  }
  return table.html();
}

std::string requests_words(const ReportTrial& trial) {
  if (!trial.sent || !trial.answered) return "not measured";
  const auto cut = trial.warm_up_sent.value_or(0);
  auto words = fmt::format("{} sent, ", with_thousands(cut + *trial.sent));
  if (cut > 0) words += fmt::format("{} of them in the warm-up; ", with_thousands(cut));
  words += fmt::format("{} answered", with_thousands(*trial.answered));
  for (const auto& [outcome, count] : trial.failed) {
    words += fmt::format(", {} {}", with_thousands(count), outcome);
  }
  const auto add_rate = [&words](const std::optional<double>& rate, std::string_view what) {
    if (rate) words += fmt::format("; {}/s {}", figure_rate_text(*rate), what);
  };
  add_rate(trial.offered_per_second, "offered");
  add_rate(trial.sent_per_second, "sent");
  add_rate(trial.answered_per_second, "answered");
  return words;
}

std::string warm_up_words(const ReportTrial& trial) {
  return trial.warm_up_seconds > 0
             ? fmt::format("the first {:.2f} s are not counted", trial.warm_up_seconds)
             : std::string("nothing was cut");
}

std::string tokens_words(const ReportTrial& trial) {
  if (!trial.input_tokens || !trial.output_tokens) return {};
  auto words = fmt::format("{} read", with_thousands(*trial.input_tokens));
  const auto rate = [](const std::optional<double>& value) {
    return value ? fmt::format(" ({}/s)", figure_rate_text(*value)) : std::string();
  };
  if (*trial.input_tokens > 0) words += rate(trial.input_tokens_per_second);
  if (*trial.output_tokens == 0) return words;
  return words + fmt::format(", {} written{}, counted by {}", with_thousands(*trial.output_tokens),
                             rate(trial.output_tokens_per_second),
                             token_source_words(trial.token_source));
}

std::string parts_words(const ReportTrial& trial) {
  if (!trial.parts) return {};
  const auto& parts = *trial.parts;
  auto words = fmt::format(
      "{} waiting for a connection + {} generator late + {} sending + {} to the first byte + {} to "
      "the last = {} ms",
      milliseconds_text(parts.connection_wait), milliseconds_text(parts.lag),
      milliseconds_text(parts.sending), milliseconds_text(parts.first_byte_wait),
      milliseconds_text(parts.receiving), milliseconds_text(parts.total()));
  if (trial.stages.empty()) return words;
  double sum = 0;
  words += "; of which the server reports ";
  bool is_first = true;
  for (const auto& stage : trial.stages) {
    sum += stage.seconds;
    words += fmt::format("{}{} {}", is_first ? "" : " + ", milliseconds_text(stage.seconds),
                         cut_text(stage.name, kProblemBytesMost));
    is_first = false;
  }
  const double server_side = parts.first_byte_wait + parts.receiving;
  if (sum > server_side) return words;
  return words + fmt::format("; elsewhere {}", milliseconds_text(server_side - sum));
}

std::string generator_words(const ReportTrial& trial) {
  if (!trial.lateness_p99 || !trial.lateness_limit) return "not measured";
  auto words =
      fmt::format("99th percentile of the {} {} ms (limit {} ms)", trial.lateness,
                  milliseconds_text(*trial.lateness_p99), milliseconds_text(*trial.lateness_limit));
  if (trial.others_share) {
    words += fmt::format("; other programs {:.0f} % of the CPUs", kPerCent * *trial.others_share);
  }
  // Less than half a per cent would be shown as nothing.
  if (trial.stolen_share && *trial.stolen_share >= 0.005) {
    words += fmt::format(", stolen {:.1f} %", kPerCent * *trial.stolen_share);
  }
  return words;
}

void add_words(HtmlTable& table, std::string_view what, const std::string& words) {
  if (!words.empty()) table.rows.push_back({html_escaped(what), html_escaped(words)});
}

std::string trial_table(const ReportLoad& load) {
  HtmlTable table{.caption = "What else was seen", .columns = {"", ""}, .has_words = true};
  const auto& trial = load.trials.front();
  add_words(table, "requests", requests_words(trial));
  add_words(table, "warm-up", warm_up_words(trial));
  table.rows.push_back({"the rest", steady_words(trial)});
  add_words(table, "tokens", tokens_words(trial));
  add_words(table, "time (mean)", parts_words(trial));
  add_words(table, "generator", generator_words(trial));
  return table.html();
}

std::string objectives_table(const ReportLoad& load) {
  HtmlTable table{.caption = "Objectives", .columns = {"objective", "", "measured"}};
  for (const auto& one : load.objectives) {
    const auto value = html_escaped(objective_value_text(one));
    table.rows.push_back({html_name(one.text),
                          one.is_met   ? "met"
                          : !one.value ? "<span class=\"bad\">NOT known</span>"
                                       : "<span class=\"bad\">MISSED</span>",
                          one.value ? value : "<span class=\"none\">" + value + "</span>"});
  }
  return table.html();
}

// Of all trials; empty where nothing speaks against what the server reports.
std::string doubts_words(const ReportLoad& load) {
  StageDoubts doubts;
  std::uint64_t answered = 0;
  for (const auto& trial : load.trials) {
    doubts.too_long += trial.stage_doubts.too_long;
    doubts.left_out += trial.stage_doubts.left_out;
    answered += trial.answered.value_or(0);
  }
  return stage_doubts_text(doubts, answered);
}

std::string problems_list(const ReportLoad& load) {
  std::string html;
  const auto doubts = doubts_words(load);
  if (!doubts.empty()) html += fmt::format("<li>{}</li>\n", html_escaped(doubts));
  std::size_t count = 0;
  for (const auto& trial : load.trials) {
    for (const auto& problem : trial.problems) {
      if (count++ < kProblemsMost) {
        html += fmt::format("<li>failed: {}</li>\n",
                            html_escaped(cut_text(problem, kProblemBytesMost)));
      }
    }
  }
  if (count > kProblemsMost) html += fmt::format("<li>and {} more</li>\n", count - kProblemsMost);
  return html.empty() ? html : "<ul>\n" + html + "</ul>\n";
}

// A line for each trial where a plot can tell so many apart, else one for all.
std::vector<LatencyLine> latency_lines(const ReportLoad& load) {
  std::vector<LatencyLine> lines;
  if (load.trials.size() > kPlotSeriesMost) {
    lines.push_back({.name = fmt::format("all {} trials together", load.trials.size()),
                     .latencies = counted_latencies(load.trials)});
    return lines;
  }
  for (std::size_t i = 0; i < load.trials.size(); ++i) {
    const auto& trial = load.trials[i];
    LatencyLine line{.name = load.trials.size() > 1 ? fmt::format("trial {}", i + 1) : "answers",
                     .latencies = counted_latencies(std::span(&trial, 1))};
    for (const auto& times : trial.times) {
      const bool is_alone = load.trials.size() == 1;
      if (is_alone && times.figure == "latency") line.intervals = &times.distribution;
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string plots_of(const std::string& id, const ReportLoad& load) {
  const auto lines = latency_lines(load);
  const bool has_intervals = !lines.empty() && lines.front().intervals != nullptr;
  const auto plots =
      percentile_figure(id + "-p",
                        has_intervals ? "Latency by percentile<span class=\"muted\">: bars are the "
                                        "95 % intervals</span>"
                                      : "Latency by percentile",
                        lines) +
      latency_over_time_figure(id + "-t", load);
  if (!plots.empty()) return "<div class=\"plots\">\n" + plots + "</div>\n";
  return "<p class=\"none\">Latencies are not drawn, because the result holds no samples.</p>\n";
}

}  // namespace

std::string load_section(const std::string& id, const ReportResult& result,
                         const ReportLoad& load) {
  auto html = fmt::format("<section>\n<h3>{}: {}</h3>\n{}", html_name(result.name),
                          html_name(load.name), warnings_html(warnings_of(result, load)));
  if (load.trials.size() > 1) {
    html += over_trials_table(load) + each_trial_table(result, load);
  } else if (!load.trials.empty()) {
    const auto times = times_table(load.trials.front());
    html += times.empty() ? "<p class=\"none\">Times were not measured, because no request was "
                            "answered after the warm-up.</p>\n"
                          : times;
    html += trial_table(load);
  }
  html += objectives_table(load) + problems_list(load) + plots_of(id, load);
  return html + "</section>\n";
}

}  // namespace muster

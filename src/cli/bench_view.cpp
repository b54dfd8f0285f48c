// Each figure is shown with its interval or not at all; what a reader must know before trusting any
// of them stands in the first line. Three significant digits are shown, because the interval beside
// them is wider than the fourth. Percentiles that too few samples support are shown as a dash;
// several trials are shown by their means, because choosing one of them would choose a result.
#include "cli/bench_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>

#include "base/text.h"
#include "bench/result/figure_text.h"
#include "bench/result/peak_search.h"
#include "bench/statistics/percentile.h"
#include "terminal/table.h"
#include "terminal/text_width.h"
#include "terminal/text_wrap.h"

namespace muster {
namespace {

constexpr double kPerCent = 100;
constexpr double kMedian = 0.5;
constexpr double kTail = 0.99;

std::string interval_text(const Estimate& estimate) {
  const auto end = [](const std::optional<double>& value) {
    return value ? milliseconds_text(*value) : std::string("?");
  };
  return fmt::format("{} to {}", end(estimate.low), end(estimate.high));
}

const BenchTrial* first_invalid(const BenchResult& result) {
  for (const auto& point : result.points) {
    for (const auto& trial : point.trials) {
      if (!trial.summary.is_valid()) return &trial;
    }
  }
  return nullptr;
}

std::string percentile_words(const Distribution& latency, double share, std::string_view name) {
  const auto& estimate = latency.percentile(share);
  if (!estimate) return fmt::format("{} unknown (too few)", name);
  return fmt::format("{} {} ms ({})", name, milliseconds_text(estimate->value),
                     interval_text(*estimate));
}

// Of all trials: a rate says nothing without what it left out.
std::string failures_words(const BenchPoint& point) {
  std::uint64_t failed = 0;
  std::uint64_t sent = 0;
  for (const auto& trial : point.trials) {
    failed += trial.summary.failed_count();
    sent += trial.summary.sent;
  }
  return fmt::format("{} of {} failed", with_thousands(failed), with_thousands(sent));
}

std::string point_verdict(const BenchPoint& point) {
  const auto& summary = point.trials.front().summary;
  if (point.trials.size() > 1) {
    const auto figures = trial_figures(point);
    const auto rates = figures.find("throughput");
    if (rates == figures.end()) {
      return fmt::format("{}: no rate, {} trials; {}", point.load, point.trials.size(),
                         failures_words(point));
    }
    const auto rate = figure_mean(point, rates->first, rates->second);
    return fmt::format("{}: {} answers/s ({} to {}), {} trials; {}", point.load,
                       figure_rate_text(rate.mean), figure_rate_text(rate.low),
                       figure_rate_text(rate.high), point.trials.size(), failures_words(point));
  }
  if (!summary.latency) return fmt::format("{}: {}", point.load, failures_words(point));
  return fmt::format("{}: {}, {}, {}; {}", point.load,
                     summary.has_rate()
                         ? figure_rate_text(summary.answered_per_second) + " answers/s"
                         : std::string("no rate"),
                     percentile_words(*summary.latency, kMedian, "latency p50"),
                     percentile_words(*summary.latency, kTail, "p99"), failures_words(point));
}

// What ended the search: the objectives, or this program.
std::string missed_words(const BenchResult& result) {
  const auto& missed = result.peak->missed;
  if (!missed) return {};
  const bool is_late = std::ranges::any_of(result.points, [&](const BenchPoint& point) {
    const auto& summary = point.trials.front().summary;
    return summary.offered_per_second == missed && !summary.is_valid();
  });
  if (is_late) return fmt::format("; at {}/s this program was late", figure_rate_text(*missed));
  return fmt::format(", {}/s misses them", figure_rate_text(*missed));
}

// Why nothing is known at the highest rate that is not known, and how long would be enough.
std::string unknown_words(const BenchResult& result) {
  const double rate = *result.peak->unknown;
  auto words = fmt::format("at {}/s", figure_rate_text(rate));
  for (const auto& point : result.points) {
    const auto& summary = point.trials.front().summary;
    if (summary.offered_per_second != rate) continue;
    const auto unknown = std::ranges::find_if(
        point.objectives, [](const ObjectiveResult& one) { return !one.value; });
    if (unknown == point.objectives.end()) continue;
    words += fmt::format(" {} is not known ({})", unknown->objective.figure, unknown->why_unknown);
    // An answer has many gaps between its pieces; how many nobody knows beforehand.
    if (unknown->objective.figure.starts_with("itl")) return words;
    const auto needed = samples_needed_of(unknown->objective.figure);
    if (!needed) return words;
    const double sent_seconds = summary.warm_up_seconds + summary.counted_seconds;
    const double cut = summary.is_warm_up_given ? summary.warm_up_seconds : 0;
    const double enough = std::max(cut + seconds_for_samples(*needed, rate), 2 * sent_seconds);
    return words + fmt::format(": --duration {:.0f}s", std::ceil(enough));
  }
  return words + " they are not known";
}

std::string peak_line(const BenchResult& result) {
  const auto& peak = *result.peak;
  if (peak.rate) {
    return fmt::format("peak: {}/s keeps the objectives{}\n", figure_rate_text(*peak.rate),
                       missed_words(result));
  }
  if (!peak.unknown) return "no rate that was tried keeps the objectives\n";
  return fmt::format("no rate is known to keep the objectives: {}{}\n", unknown_words(result),
                     missed_words(result));
}

std::string unmet_line(const BenchResult& result) {
  if (result.misses_objectives()) return "objectives missed\n";
  for (const auto& point : result.points) {
    for (const auto& one : point.objectives) {
      if (one.value) continue;
      return fmt::format("objectives not known: {}: {}\n", one.objective.text, one.why_unknown);
    }
  }
  return "objectives not known\n";
}

// Lines that are no table: each with its own indent, and what goes on two columns deeper.
std::string fitted(std::string_view lines, std::size_t width) {
  std::string text;
  while (!lines.empty()) {
    const auto line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    const auto indent = std::min(line.find_first_not_of(' '), line.size());
    text += wrapped(line, {.width = width, .head = line.substr(0, indent), .indent = indent + 2});
  }
  return text;
}

// In the order of importance: an invalid run says nothing, a peak is what was asked for, then
// objectives, then figures.
std::string verdict_line(const BenchResult& result) {
  if (const auto* trial = first_invalid(result); trial != nullptr && !result.is_conclusive()) {
    const auto& generator = trial->summary.generator;
    return fmt::format(
        "INVALID: the load generator was late: 99th percentile of the {} {} ms, limit {} ms\n",
        generator.what, milliseconds_text(generator.lag_p99), milliseconds_text(generator.limit));
  }
  if (result.peak) return peak_line(result);
  if (!result.meets_objectives()) return unmet_line(result);
  if (result.points.size() == 1) return point_verdict(result.points.front()) + "\n";
  const auto rate_of = [](const BenchPoint& point) {
    const auto figures = mean_figures(point);
    const auto rate = figures.find("throughput");
    return rate == figures.end() ? -1.0 : rate->second;
  };
  const auto best = std::ranges::max_element(result.points, {}, rate_of);
  return (rate_of(*best) < 0 ? "" : "highest throughput: ") + point_verdict(*best) + "\n";
}

struct TimeRow {
  std::string_view name;
  const std::optional<Distribution>* distribution;
};

// Value and interval of one distribution, a line each.
void add_time_rows(Table& table, const TimeRow& row) {
  const auto& distribution = **row.distribution;
  std::vector<std::string> values{std::string(row.name),
                                  milliseconds_text(distribution.mean.value)};
  std::vector<std::string> lows{"  from"};
  std::vector<std::string> highs{"  to"};
  const auto add_ends = [&](const Estimate& estimate) {
    lows.push_back(estimate.low ? milliseconds_text(*estimate.low) : "?");
    highs.push_back(estimate.high ? milliseconds_text(*estimate.high) : "?");
  };
  add_ends(distribution.mean);
  for (const auto& one : distribution.percentiles) {
    values.push_back(one.estimate ? milliseconds_text(one.estimate->value) : "-");
    if (one.estimate) {
      add_ends(*one.estimate);
    } else {
      lows.emplace_back("-");
      highs.emplace_back("-");
    }
  }
  values.push_back(milliseconds_text(distribution.most));
  lows.emplace_back();
  highs.emplace_back();
  table.add_row({values.begin(), values.end()});
  table.add_row({lows.begin(), lows.end()});
  table.add_row({highs.begin(), highs.end()});
}

std::string times_table(const TrialSummary& summary, std::size_t width) {
  Table table({{"ms", Align::Left, true},
               {"mean", Align::Right},
               {"p50", Align::Right},
               {"p90", Align::Right},
               {"p95", Align::Right},
               {"p99", Align::Right},
               {"p99.9", Align::Right},
               {"max", Align::Right}});
  const std::array rows{TimeRow{"latency", &summary.latency}, TimeRow{"service", &summary.service},
                        TimeRow{"first token", &summary.first_token},
                        TimeRow{"between pieces", &summary.token_gap},
                        TimeRow{"per token", &summary.per_token}};
  bool has_any = false;
  for (const auto& row : rows) {
    if (!*row.distribution) continue;
    add_time_rows(table, row);
    has_any = true;
  }
  return has_any ? table.render(width) : std::string();
}

std::string warm_up_line(const TrialSummary& summary) {
  auto line =
      summary.warm_up_seconds > 0
          ? fmt::format(
                "warm-up: the first {:.2f} s are not counted, {}", summary.warm_up_seconds,
                summary.is_warm_up_given ? "as --warm-up says" : "by the test for steadiness")
          : std::string("warm-up: nothing was cut");
  if (!summary.is_steady) return line + "\n";
  if (*summary.is_steady) return line + "; the rest is steady\n";
  return line + fmt::format("; the rest is NOT steady: {:+.0f} % from its beginning to its end\n",
                            kPerCent * summary.drift);
}

// Of all trials, so that the sum is what was asked for: those of the warm-up, and how each of the
// others ended.
std::string requests_words(const BenchPoint& point) {
  std::uint64_t cut = 0;
  std::uint64_t sent = 0;
  std::uint64_t answered = 0;
  std::map<std::string_view, std::uint64_t> failed;
  for (const auto& trial : point.trials) {
    const auto& summary = trial.summary;
    cut += summary.warm_up_sent;
    sent += summary.sent;
    answered += summary.answered;
    for (const auto& [name, count] : summary.failed) failed[name] += count;
  }
  auto words = fmt::format("requests: {} sent, ", with_thousands(cut + sent));
  if (cut > 0) words += fmt::format("{} of them in the warm-up; ", with_thousands(cut));
  words += fmt::format("{} answered", with_thousands(answered));
  for (const auto& [name, count] : failed) {
    words += fmt::format(", {} {}", with_thousands(count), name);
  }
  return words;
}

std::string requests_line(const BenchPoint& point) {
  const auto& summary = point.trials.front().summary;
  auto line = requests_words(point);
  if (summary.counted_seconds <= 0) return line + "; no rate\n";
  if (summary.offered_per_second) {
    line += fmt::format("; {}/s offered, {}/s sent", figure_rate_text(*summary.offered_per_second),
                        figure_rate_text(summary.sent_per_second));
  }
  if (!summary.has_rate()) return line + ", no rate of answers\n";
  return line + fmt::format(", {}/s answered\n", figure_rate_text(summary.answered_per_second));
}

// Of all trials: what their rates miss is no chance that several of them would show.
std::string cut_rate_line(const BenchPoint& point) {
  CutRate rate;
  for (const auto& trial : point.trials) {
    rate.missed_at_end += trial.summary.missed_at_end;
    rate.answered += trial.summary.answered;
    rate.counted_seconds += trial.summary.counted_seconds;
    rate.has_kept_up = rate.has_kept_up && trial.summary.has_kept_up;
  }
  const auto text = cut_rate_text(rate);
  return text.empty() ? text : text + "\n";
}

std::string tokens_line(const TokenCounts& tokens) {
  auto line = fmt::format("tokens: {} read", with_thousands(tokens.input));
  const auto rate = [](const std::optional<double>& value) {
    return value ? figure_rate_text(*value) + "/s" : std::string("no rate");
  };
  if (tokens.input > 0) line += fmt::format(" ({})", rate(tokens.input_per_second));
  if (tokens.output > 0) {
    line += fmt::format(", {} written ({}), counted by {}", with_thousands(tokens.output),
                        rate(tokens.output_per_second), token_source_words(tokens.output_source));
  }
  return line + "\n";
}

// The parts add up to the mean latency, so that no time is left without a name.
std::string parts_lines(const TrialSummary& summary) {
  const auto& parts = summary.parts;
  auto lines = fmt::format(
      "time (mean, ms): {} waiting for a connection + {} generator late + {} sending\n"
      "  + {} to the first byte + {} to the last = {}\n",
      milliseconds_text(parts.connection_wait), milliseconds_text(parts.lag),
      milliseconds_text(parts.sending), milliseconds_text(parts.first_byte_wait),
      milliseconds_text(parts.receiving), milliseconds_text(parts.total()));
  if (!summary.stages.empty()) {
    double sum = 0;
    std::vector<std::string> words;
    for (const auto& stage : summary.stages) {
      sum += stage.seconds;
      words.push_back(
          fmt::format("{} {}", milliseconds_text(stage.seconds), printable(stage.name)));
    }
    // What is left over is network, queues of the kernel, and what the server does not count.
    const double server_side = parts.first_byte_wait + parts.receiving;
    lines += fmt::format("  of which the server reports: {}", fmt::join(words, " + "));
    if (sum <= server_side) {
      lines += fmt::format("; elsewhere {}", milliseconds_text(server_side - sum));
    }
    lines += "\n";
  }
  if (summary.is_saturated) {
    lines +=
        "  all connections were busy at times: what requests waited for one is part of their "
        "latency, but not of their service time\n";
  }
  return lines;
}

std::string machine_line(const BenchTrial& trial) {
  const auto& generator = trial.summary.generator;
  auto line =
      fmt::format("generator: 99th percentile of the {} {} ms (limit {} ms)", generator.what,
                  milliseconds_text(generator.lag_p99), milliseconds_text(generator.limit));
  const auto& use = trial.machine;
  if (use.others_share) {
    line += fmt::format("; other programs {:.0f} % of the CPUs", kPerCent * *use.others_share);
  }
  // Less than half a per cent would be shown as nothing at the precision of this line.
  if (use.stolen_share && *use.stolen_share >= 0.005) {
    line += fmt::format(", stolen {:.1f} %", kPerCent * *use.stolen_share);
  }
  return line + "\n";
}

// Of all trials, as all that a reader must know of the stages.
std::string doubts_line(const BenchPoint& point) {
  StageDoubts doubts;
  std::uint64_t answered = 0;
  for (const auto& trial : point.trials) {
    doubts.too_long += trial.summary.stage_doubts.too_long;
    doubts.left_out += trial.summary.stage_doubts.left_out;
    answered += trial.summary.answered;
  }
  return doubts.has_any() ? stage_doubts_text(doubts, answered) + "\n" : std::string();
}

std::string problems_lines(const BenchTrial& trial) {
  std::string lines;
  for (const auto& problem : trial.samples.problems) {
    lines += fmt::format("failed: {}\n", printable(problem));
  }
  return lines;
}

std::string objectives_lines(const BenchPoint& point) {
  std::string lines;
  for (const auto& one : point.objectives) {
    const bool is_time = one.objective.figure != "error_rate" &&
                         one.objective.figure.find("throughput") == std::string::npos;
    if (!one.value) {
      lines += fmt::format("objective {}: NOT known ({})\n", one.objective.text, one.why_unknown);
      continue;
    }
    lines +=
        fmt::format("objective {}: {} ({})\n", one.objective.text, one.is_met ? "met" : "MISSED",
                    is_time ? time_text(*one.value) : figure_text(*one.value));
  }
  return lines;
}

// Of several trials each figure's mean with its interval; no trial is better than another.
std::string trials_table(const BenchPoint& point, std::size_t width) {
  Table table({{"over the trials", Align::Left, true},
               {"mean", Align::Right},
               {"from", Align::Right},
               {"to", Align::Right}});
  constexpr std::array<std::string_view, 10> kShown{
      "throughput", "token_throughput", "latency_p50", "latency_p95", "latency_p99",
      "ttft_p50",   "ttft_p99",         "tpot_p50",    "itl_p99",     "error_rate"};
  const auto figures = trial_figures(point);
  for (const auto figure : kShown) {
    const auto found = figures.find(figure);
    if (found == figures.end()) continue;
    const auto mean = figure_mean(point, figure, found->second);
    const bool is_time = figure.find("_p") != std::string_view::npos;
    const auto text = [&](double value) {
      return is_time ? milliseconds_text(value) : figure_text(value);
    };
    table.add_row({fmt::format("{}{}", figure, is_time ? " (ms)" : ""), text(mean.mean),
                   text(mean.low), text(mean.high)});
  }
  return table.render(width);
}

std::string point_text(const BenchPoint& point, std::size_t width) {
  const auto& trial = point.trials.front();
  auto text = fmt::format("\n{}\n", point.load);
  if (point.trials.size() > 1) {
    auto lines = requests_words(point) + "\n" + cut_rate_line(point) + doubts_line(point) +
                 objectives_lines(point);
    for (const auto& one : point.trials) lines += problems_lines(one);
    return text + trials_table(point, width) + fitted(lines, width);
  }
  const auto& summary = trial.summary;
  auto lines = requests_line(point) + cut_rate_line(point) + warm_up_line(summary);
  if (summary.tokens) lines += tokens_line(*summary.tokens);
  if (summary.answered > 0) lines += parts_lines(summary);
  lines +=
      doubts_line(point) + machine_line(trial) + objectives_lines(point) + problems_lines(trial);
  return text + times_table(summary, width) + fitted(lines, width);
}

}  // namespace

std::string bench_text(const BenchResult& result, std::size_t width) {
  auto text = fitted(verdict_line(result), width);
  for (const auto& point : result.points) text += point_text(point, width);
  return text;
}

}  // namespace muster

// One place decides what a load's figures are and what stands against them, so that every table of
// a report says the same. What is invalid is said wherever its figure stands.
#include "report/load_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "bench/result/figure_text.h"
#include "report/html.h"

namespace muster {
namespace {

constexpr double kPerCent = 100;
constexpr std::size_t kSentenceBytesMost = 600;

// "latency_p99" is the 99th percentile of "latency"; nullopt: it is no such figure.
std::optional<double> share_of(std::string_view percentile) {
  if (percentile == "p50") return 0.5;
  if (percentile == "p90") return 0.9;
  if (percentile == "p95") return 0.95;
  if (percentile == "p99") return 0.99;
  if (percentile == "p999") return 0.999;
  return std::nullopt;
}

std::optional<Estimate> trial_estimate(const ReportTrial& trial, std::string_view figure) {
  const auto cut = figure.rfind('_');
  const auto kind = figure.substr(0, cut);
  const auto what = cut == std::string_view::npos ? std::string_view() : figure.substr(cut + 1);
  for (const auto& times : trial.times) {
    if (times.figure != kind) continue;
    if (what == "mean") return times.distribution.mean;
    if (const auto share = share_of(what)) return times.distribution.percentile(*share);
  }
  const auto found = trial.figures.find(figure);
  if (found == trial.figures.end()) return std::nullopt;
  return Estimate{.value = found->second, .low = {}, .high = {}};
}

bool is_time(std::string_view figure) {
  return figure.find("_p") != std::string_view::npos || figure.ends_with("_mean");
}

bool is_rate(std::string_view figure) {
  return figure == "throughput" || figure == "token_throughput";
}

LoadWarning warning(std::string_view badge, std::string_view why) {
  return {.badge = std::string(badge),
          .sentence = cut_text(fmt::format("{}: {}", badge, why), kSentenceBytesMost)};
}

std::string lateness_words(const ReportTrial& trial) {
  if (!trial.lateness_p99 || !trial.lateness_limit) return "the load generator was late";
  return fmt::format("the load generator was late: 99th percentile of the {} {} ms, limit {} ms",
                     trial.lateness, milliseconds_text(*trial.lateness_p99),
                     milliseconds_text(*trial.lateness_limit));
}

void add_validity(const ReportResult& result, const ReportLoad& load,
                  std::vector<LoadWarning>& warnings) {
  const auto is_late = [](const ReportTrial& trial) { return !trial.is_valid; };
  const auto late = std::ranges::find_if(load.trials, is_late);
  if (late != load.trials.end()) warnings.push_back(warning("INVALID", lateness_words(*late)));
  if (!result.figures.invalid_reason.empty()) {
    warnings.push_back(warning("INVALID", result.figures.invalid_reason));
  }
}

void add_steadiness(const ReportLoad& load, std::vector<LoadWarning>& warnings) {
  const ReportTrial* worst = nullptr;
  const auto drift_of = [](const ReportTrial& trial) { return std::abs(trial.drift.value_or(0)); };
  for (const auto& trial : load.trials) {
    if (trial.is_steady != std::optional(false)) continue;
    if (worst == nullptr || drift_of(trial) > drift_of(*worst)) worst = &trial;
  }
  if (worst == nullptr) return;
  warnings.push_back(warning(
      "NOT steady", fmt::format("after the warm-up the latency changed by {:+.0f} % from its "
                                "beginning to its end",
                                kPerCent * worst->drift.value_or(0))));
}

void add_cut_rate(const ReportLoad& load, std::vector<LoadWarning>& warnings) {
  CutRate rate;
  for (const auto& trial : load.trials) {
    rate.missed_at_end += trial.missed_at_end;
    rate.answered += trial.answered.value_or(0);
    rate.counted_seconds += trial.counted_seconds;
    rate.has_kept_up = rate.has_kept_up && trial.has_kept_up;
  }
  const auto why = cut_rate_text(rate);
  if (!why.empty()) warnings.push_back(warning("CUT SHORT", why));
}

std::string interval_words(std::string_view figure, const Estimate& estimate) {
  const auto end = [figure](const std::optional<double>& value) {
    return value ? shown_value(figure, *value) : std::string("?");
  };
  return fmt::format("{} to {}", end(estimate.low), end(estimate.high));
}

std::string point_verdict(const ReportLoad& load) {
  auto text = load.name + ": ";
  const auto rate = figure_of(load, "throughput");
  if (!rate) return text + "throughput was not measured";
  text += shown_value("throughput", rate->value) + " answers/s";
  if (load.trials.size() > 1) {
    return text +
           fmt::format(" ({}), {} trials", interval_words("throughput", *rate), load.trials.size());
  }
  for (const auto* figure : {"latency_p50", "latency_p99"}) {
    const auto value = figure_of(load, figure);
    text += figure == std::string_view("latency_p50") ? ", latency p50 " : ", p99 ";
    text += value ? fmt::format("{} ms ({})", shown_value(figure, value->value),
                                interval_words(figure, *value))
                  : std::string("unknown (too few)");
  }
  const auto counts = counts_of(load);
  if (!counts) return text;
  return text + fmt::format("; {} of {} failed", with_thousands(counts->failed),
                            with_thousands(counts->sent));
}

std::string peak_verdict(const PeakResult& peak) {
  if (!peak.rate && peak.unknown) {
    return fmt::format("no rate is known to keep the objectives: at {}/s they are not known",
                       figure_rate_text(*peak.unknown));
  }
  if (!peak.rate) return "no rate that was tried keeps the objectives";
  auto text = fmt::format("peak: {}/s keeps the objectives", figure_rate_text(*peak.rate));
  if (peak.missed) text += fmt::format(", {}/s misses them", figure_rate_text(*peak.missed));
  return text;
}

}  // namespace

std::optional<Estimate> figure_of(const ReportLoad& load, std::string_view figure) {
  if (load.trials.size() == 1) return trial_estimate(load.trials.front(), figure);
  const auto found = load.over_trials.find(figure);
  return found == load.over_trials.end() ? std::nullopt : std::optional(found->second);
}

std::vector<ShownFigure> shown_figures() {
  return {{"throughput", "throughput (/s)"},      {"token_throughput", "token throughput (/s)"},
          {"latency_p50", "latency p50 (ms)"},    {"latency_p95", "latency p95 (ms)"},
          {"latency_p99", "latency p99 (ms)"},    {"ttft_p50", "first token p50 (ms)"},
          {"ttft_p99", "first token p99 (ms)"},   {"tpot_p50", "per token p50 (ms)"},
          {"itl_p99", "between pieces p99 (ms)"}, {"error_rate", "error rate"}};
}

std::string shown_value(std::string_view figure, double value) {
  if (is_time(figure)) return milliseconds_text(value);
  return is_rate(figure) ? figure_rate_text(value) : figure_text(value);
}

std::string estimate_html(std::string_view figure, const Estimate& estimate) {
  auto html = shown_value(figure, estimate.value);
  if (!estimate.low && !estimate.high) return html;
  return html + fmt::format("<span class=\"ci\">{}</span>", interval_words(figure, estimate));
}

std::string figure_html_of(const ReportLoad& load, std::string_view figure) {
  if (const auto value = figure_of(load, figure)) return estimate_html(figure, *value);
  const bool has_kind = !load.trials.empty() &&
                        std::ranges::any_of(load.trials.front().times, [&](const auto& times) {
                          return figure.starts_with(times.figure + "_");
                        });
  return has_kind ? "<span class=\"none\">not known: too few samples</span>"
                  : "<span class=\"none\">not measured</span>";
}

std::string objective_value_text(const ReportObjective& objective) {
  if (!objective.value) {
    return objective.why_unknown.empty() ? "not measured"
                                         : cut_text(objective.why_unknown, kSentenceBytesMost);
  }
  const auto figure = objective.text.substr(0, objective.text.find_first_of("<>"));
  return is_time(figure) ? time_text(*objective.value) : figure_text(*objective.value);
}

std::vector<LoadWarning> warnings_of(const ReportResult& result, const ReportLoad& load) {
  std::vector<LoadWarning> warnings;
  add_validity(result, load, warnings);
  add_steadiness(load, warnings);
  add_cut_rate(load, warnings);
  for (const auto& objective : load.objectives) {
    if (objective.is_met) continue;
    warnings.push_back(
        warning(objective.value ? "MISSED" : "NOT known",
                fmt::format("objective {} ({})", objective.text, objective_value_text(objective))));
  }
  const auto counts = counts_of(load);
  if (counts && counts->failed > 0) {
    warnings.push_back(
        warning("FAILURES", fmt::format("{} of {} requests failed", with_thousands(counts->failed),
                                        with_thousands(counts->sent))));
  }
  return warnings;
}

std::string badges_html(const std::vector<LoadWarning>& warnings) {
  std::string html;
  std::string_view last;
  for (const auto& one : warnings) {
    if (one.badge == last) continue;
    html += fmt::format("{}<span class=\"bad\">{}</span>", html.empty() ? "" : ", ",
                        html_escaped(one.badge));
    last = one.badge;
  }
  return html.empty() ? "valid" : html;
}

std::string warnings_html(const std::vector<LoadWarning>& warnings) {
  std::string html;
  for (const auto& one : warnings) {
    html += fmt::format("<p class=\"alert\">{}</p>\n", html_escaped(one.sentence));
  }
  return html;
}

bool is_to_be_trusted(const std::vector<LoadWarning>& warnings) {
  return std::ranges::none_of(warnings, [](const LoadWarning& one) {
    return one.badge == "INVALID" || one.badge == "NOT steady";
  });
}

// In the order of importance, as the terminal's first line.
std::string verdict_of(const ReportResult& result) {
  if (!result.figures.invalid_reason.empty()) return "INVALID: " + result.figures.invalid_reason;
  for (const auto& load : result.loads) {
    for (const auto& trial : load.trials) {
      if (!trial.is_valid && !result.peak) return "INVALID: " + lateness_words(trial);
    }
  }
  if (result.peak) return peak_verdict(*result.peak);
  const auto has = [&result](bool (*is_so)(const ReportObjective&)) {
    return std::ranges::any_of(result.loads, [is_so](const ReportLoad& load) {
      return std::ranges::any_of(load.objectives, is_so);
    });
  };
  if (has([](const ReportObjective& one) { return one.value && !one.is_met; })) {
    return "objectives missed";
  }
  if (has([](const ReportObjective& one) { return !one.value; })) return "objectives not known";
  if (result.loads.empty()) return "the result has no load";
  if (result.loads.size() == 1) return point_verdict(result.loads.front());
  const auto rate_of = [](const ReportLoad& load) {
    const auto rate = figure_of(load, "throughput");
    return rate ? rate->value : -1;
  };
  const auto best = std::ranges::max_element(result.loads, {}, rate_of);
  return (rate_of(*best) < 0 ? "" : "highest throughput: ") + point_verdict(*best);
}

std::optional<RequestCounts> counts_of(const ReportLoad& load) {
  RequestCounts counts;
  for (const auto& trial : load.trials) {
    if (!trial.sent || !trial.answered) return std::nullopt;
    counts.sent += *trial.sent;
    counts.failed += *trial.sent - std::min(*trial.sent, *trial.answered);
  }
  return counts;
}

}  // namespace muster

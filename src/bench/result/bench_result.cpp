// Judgements over all trials of all points. A result is valid only if each trial is: one invalid
// trial makes a mean of trials meaningless. A figure counts only where every trial has it, since a
// mean over some of them would compare different things.

#include "bench/result/bench_result.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/statistics/failed_share.h"

namespace muster {
namespace {

// The samples that a trial has for a time, by its name among the objectives.
std::uint64_t sample_count(const TrialSummary& summary, std::string_view kind) {
  const auto& times = kind == "latency"   ? summary.latency
                      : kind == "service" ? summary.service
                      : kind == "ttft"    ? summary.first_token
                      : kind == "tpot"    ? summary.per_token
                                          : summary.token_gap;
  return times ? times->count : 0;
}

std::string why_no_rate(const BenchPoint& point) {
  for (const auto& trial : point.trials) {
    const auto& summary = trial.summary;
    if (summary.answered == 0 || summary.has_rate()) continue;
    return summary.counted_seconds > 0
               ? "no answer ended while requests were sent: let it send longer"
               : "all requests that count were sent at one moment";
  }
  return "nothing was counted";
}

std::string why_unknown(const BenchPoint& point, std::string_view figure) {
  const auto needed = samples_needed_of(figure);
  if (!needed) return why_no_rate(point);
  const auto cut = figure.find('_');
  const auto kind = figure.substr(0, cut);
  auto least = sample_count(point.trials.front().summary, kind);
  for (const auto& trial : point.trials) least = std::min(least, sample_count(trial.summary, kind));
  if (least == 0) return "no answer that is counted has this time";
  return fmt::format("{} needs {} {}, and {} {}", figure.substr(cut + 1), *needed,
                     kind == "itl" ? "gaps between pieces" : "counted answers",
                     point.trials.size() > 1 ? "a trial had" : "there were", least);
}

}  // namespace

bool BenchResult::is_valid() const {
  return std::ranges::all_of(points, [](const BenchPoint& point) {
    return std::ranges::all_of(point.trials,
                               [](const BenchTrial& trial) { return trial.summary.is_valid(); });
  });
}

// A search misses objectives on purpose while it narrows the gap, so it is judged by what it found.
bool BenchResult::meets_objectives() const {
  if (peak) return peak->rate.has_value();
  return std::ranges::all_of(points, [](const BenchPoint& point) {
    return std::ranges::all_of(point.objectives,
                               [](const ObjectiveResult& one) { return one.is_met; });
  });
}

std::map<std::string, std::vector<double>, std::less<>> trial_figures(const BenchPoint& point) {
  std::map<std::string, std::vector<double>, std::less<>> figures;
  for (const auto& trial : point.trials) {
    for (const auto& [name, value] : figures_of(trial.summary)) figures[name].push_back(value);
  }
  std::erase_if(figures,
                [&](const auto& entry) { return entry.second.size() != point.trials.size(); });
  return figures;
}

TrialMean figure_mean(const BenchPoint& point, std::string_view figure,
                      std::span<const double> values) {
  if (figure == "error_rate") {
    std::vector<FailureCount> failures;
    for (const auto& trial : point.trials) {
      failures.push_back({.failed = trial.summary.failed_count(), .sent = trial.summary.sent});
    }
    const auto share = share_over_trials(failures, kUsualConfidence);
    return {.mean = share.value, .low = share.low, .high = share.high};
  }
  std::vector<double> counts;
  for (const auto& trial : point.trials) counts.push_back(rate_count(trial.summary, figure));
  return mean_over_trials(values, kUsualConfidence,
                          is_rate_figure(figure) ? count_resolution(counts) : 0);
}

bool BenchResult::misses_objectives() const {
  if (peak) return !peak->rate && !peak->unknown;
  return std::ranges::any_of(points, [](const BenchPoint& point) {
    return std::ranges::any_of(point.objectives, &ObjectiveResult::is_missed);
  });
}

std::vector<ObjectiveResult> judge_point(const std::vector<Objective>& objectives,
                                         const BenchPoint& point) {
  auto results = judge_objectives(objectives, mean_figures(point));
  for (auto& one : results) {
    if (!one.value) one.why_unknown = why_unknown(point, one.objective.figure);
  }
  return results;
}

RateOutcome rate_outcome(const BenchPoint& point) {
  const auto& summary = point.trials.front().summary;
  if (!summary.is_valid() || !keeps_up(summary) ||
      std::ranges::any_of(point.objectives, &ObjectiveResult::is_missed)) {
    return RateOutcome::Missed;
  }
  const bool is_met = std::ranges::all_of(point.objectives, &ObjectiveResult::is_met);
  return is_met ? RateOutcome::Met : RateOutcome::Unknown;
}

FigureMap mean_figures(const BenchPoint& point) {
  FigureMap means;
  for (const auto& [name, values] : trial_figures(point)) {
    means[name] = figure_mean(point, name, values).mean;
  }
  return means;
}

}  // namespace muster

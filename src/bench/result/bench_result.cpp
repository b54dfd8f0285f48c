// Judgements over all trials of all points. A result is valid only if each trial is: one invalid
// trial makes a mean of trials meaningless. A figure counts only where every trial has it, since a
// mean over some of them would compare different things.

#include "bench/result/bench_result.h"

#include <algorithm>

namespace muster {

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
  std::vector<double> counts;
  for (const auto& trial : point.trials) {
    counts.push_back(trial.summary.answered_per_second * trial.summary.counted_seconds);
  }
  return mean_over_trials(values, kUsualConfidence,
                          is_rate_figure(figure) ? count_resolution(counts) : 0);
}

FigureMap mean_figures(const BenchPoint& point) {
  FigureMap means;
  for (const auto& [name, values] : trial_figures(point)) {
    means[name] = mean_over_trials(values, kUsualConfidence).mean;
  }
  return means;
}

}  // namespace muster

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/load/sample.h"
#include "bench/result/environment.h"
#include "bench/result/peak_search.h"
#include "bench/result/slo.h"
#include "bench/result/trial_summary.h"
#include "bench/statistics/comparison.h"

namespace muster {

/// One trial: what it saw and what follows from it.
struct BenchTrial {
  std::uint64_t seed = 0;
  double started_at = 0;  // seconds since 1970
  TrialSummary summary = {};
  MachineUse machine = {};
  TrialSamples samples = {};
};

/// A load and its trials.
struct BenchPoint {
  std::string load;  // "4 clients", "poisson 100/s"
  std::vector<BenchTrial> trials;
  std::vector<ObjectiveResult> objectives = {};  // by the means over the trials
};

/// How the search for the highest rate under an objective ended.
struct PeakResult {
  std::optional<double> rate;    // requests a second; nullopt: none kept the objective
  std::optional<double> missed;  // the lowest rate that missed it
  /// The highest rate of which it is not known, as it was too few requests for a percentile.
  std::optional<double> unknown = {};
};

/// A benchmark as it is written: docs/formats/bench-result.md.
struct BenchResult {
  std::string api;                   // bench_api_name
  std::string url;                   // of the server, without what its query may keep secret
  std::string model;                 // as the server names it; empty: none
  std::string server;                // its header of that name; empty: none
  std::vector<std::string> command;  // the words of the command line
  std::map<std::string, std::string> settings;  // of the command, by flag
  BenchEnvironment environment;
  std::vector<BenchPoint> points;
  std::vector<std::size_t> order;  // the point of each trial, as they were run
  std::optional<PeakResult> peak = {};
  std::string run = {};  // of a point of `bench run`: its record, as JSON; empty: it is none

  bool is_valid() const;
  /// Whether the verdict is about the server. A search leaves out the rates at which the generator
  /// was late, so that only one that has found nothing depends on them.
  bool is_conclusive() const { return is_valid() || (peak && peak->rate); }
  bool meets_objectives() const;
  /// Whether an objective is known to be missed, or a search went through all rates without one.
  /// Else an objective that is not met is not known.
  bool misses_objectives() const;
};

/// The figures that all trials of a point have, each trial's value in their order. Threads: pure.
std::map<std::string, std::vector<double>, std::less<>> trial_figures(const BenchPoint& point);

/// The mean of one of these figures with its interval at `kUsualConfidence`. Rates are taken to be
/// no finer than one answer of each trial, or one piece of them (`rate_count`). The error rate is
/// that of all requests, with the interval of `share_over_trials`: trials without a failure are
/// alike, and yet their share need not be 0. Threads: pure.
TrialMean figure_mean(const BenchPoint& point, std::string_view figure,
                      std::span<const double> values);

/// The means over the trials of a point. Threads: pure.
FigureMap mean_figures(const BenchPoint& point);

/// How objectives come out by these means, and why where they do not: "p99 needs 368 counted
/// answers, and there were 84". Threads: pure.
std::vector<ObjectiveResult> judge_point(const std::vector<Objective>& objectives,
                                         const BenchPoint& point);

/// How the one trial of a point comes out for a search: it misses also where the generator was late
/// or the server has not kept up (trial_summary.h). Threads: pure.
RateOutcome rate_outcome(const BenchPoint& point);

}  // namespace muster

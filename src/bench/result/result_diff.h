#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/statistics/comparison.h"

namespace muster {

/// What a comparison needs of a result: of each load the figures of its trials.
struct ResultFigures {
  struct Point {
    std::string load;
    std::size_t trial_count = 0;
    bool is_valid = true;  // all trials are, and what the result is of as a whole
    std::map<std::string, std::vector<double>, std::less<>> figures = {};
    // that each trial counted for its rates; empty: the file does not say of all
    std::vector<double> answers = {};
  };
  std::string environment;  // as JSON, to see whether it is the same
  std::vector<Point> points;
  std::string invalid_reason = {};  // of a point of `bench run`; empty: it is valid, or no such
};

/// Reads a result that `result_json` wrote, without its samples.
///
/// name: for messages. Errors: Corrupt: no JSON, no such result, another schema. Threads: pure.
Result<ResultFigures> read_result_figures(std::string_view json, std::string_view name);

/// One figure of one load on both sides.
struct FigureDifference {
  std::string load;
  std::string figure;
  double a = 0;  // means over the trials
  double b = 0;
  Comparison comparison;
  bool is_worse = false;  // B is, by this figure
  bool is_valid = true;   // all trials of both sides are; else the figure is shown, and no verdict
};

struct ResultDifference {
  std::vector<FigureDifference> figures;
  std::vector<std::string> notes;  // what stands against the comparison, or limits it

  bool has_worse() const;
  /// Nothing that was compared is valid.
  bool is_invalid() const;
};

/// Compares loads of the same name by throughput, token throughput, and medians and 99th
/// percentiles of the times. With m figures compared, each verdict is at 1 - (1 - confidence) / m,
/// so that the confidence is that of all verdicts together (Bonferroni). A load of which B has
/// answered nothing, and A something in each trial, is worse without a test. Notes say where more
/// requests failed on one side, whose times are then those of others, and what one side does not
/// have. Rates are taken to be no finer than one answer of each trial (`count_resolution`).
///
/// Errors: InvalidArgument: no load in common, fewer than two trials on a side. Threads: pure.
/// Source: Dunn 1961, "Multiple comparisons among means".
Result<ResultDifference> compare_results(const ResultFigures& a, const ResultFigures& b,
                                         const ComparisonRule& rule);

}  // namespace muster

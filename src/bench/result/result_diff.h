#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/statistics/comparison.h"
#include "bench/statistics/failed_share.h"

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
    // the same for the rate of tokens: pieces of answers, or answers where the file has no others
    std::vector<double> pieces = {};
    // of each trial without an answer while requests were sent, and with one later: one answer in
    // its counted time, which its rate was below
    std::vector<double> rate_bounds = {};
    // of each trial; empty: the file does not say of all, or one has sent nothing
    std::vector<FailureCount> failures = {};
  };
  std::string environment;  // as JSON, to see whether it is the same
  std::vector<Point> points;
  std::string invalid_reason = {};  // of a point of `bench run`; empty: it is valid, or no such
  /// The first figure that nobody has measured, with file, load, trial and value; empty: each is a
  /// number from 0 to 1e15. What is wrong is passed over, so whoever compares must look here.
  std::string damage = {};
};

/// Reads a result that `result_json` wrote, without its samples.
///
/// name: for messages. Errors: Corrupt: no JSON, no such result, another schema. Threads: pure.
Result<ResultFigures> read_result_figures(std::string_view json, std::string_view name);

/// One figure of one load on both sides.
struct FigureDifference {
  std::string load;
  std::string figure;
  double a = 0;  // means over the trials; of the error rate, the share of all requests
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
/// answered nothing, and A something in each trial, is worse without a test. Where all answers of B
/// came after the sending had ended its throughput is 0 to one answer in the counted time; it is
/// worse where A's interval lies above that. Rates are taken to be no finer than one answer of each
/// trial, or one piece of them (`count_resolution`). Where any request failed, the `error_rate` is
/// compared as well (`compare_failures`); times are then those of the others, as notes say with
/// what one side does not have.
///
/// Errors: InvalidArgument: no load in common, fewer than two trials on a side. Threads: pure.
/// Source: Dunn 1961, "Multiple comparisons among means".
Result<ResultDifference> compare_results(const ResultFigures& a, const ResultFigures& b,
                                         const ComparisonRule& rule);

/// The verdict of a valid figure in words: "no difference", "WORSE by 4.0 %"; of the error rate,
/// whose ratio may be infinite, "WORSE by 30 points" of per cent. Threads: pure.
std::string verdict_words(const FigureDifference& one);

}  // namespace muster

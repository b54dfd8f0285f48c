#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"

namespace muster {

enum class Difference : std::uint8_t { None, Higher, Lower };

/// What trials of two sides say of one figure: B over A.
struct Comparison {
  double ratio = 1;  // of the geometric means
  double low = 1;    // the ends of its confidence interval
  double high = 1;
  Difference difference = Difference::None;
};

struct ComparisonRule {
  double confidence = 0.99;
  double tolerance = 0;  // a difference of at most this share is none: 0.02
};

/// Welch's t-test of the logarithms, one value a trial: what varies from run to run (clocks, memory
/// layout, neighbours) is seen only in whole runs, so the samples within one count as one.
///
/// The difference is none where the interval reaches into [1 / (1 + tolerance), 1 + tolerance].
/// Errors: InvalidArgument with fewer than two trials a side, or a value that is not above 0.
/// Source: Welch 1947; Georges, Buytaert and Eeckhout 2007, "Statistically Rigorous Java
/// Performance Evaluation", section 3.3. Threads: pure.
Result<Comparison> compare_trials(std::span<const double> a, std::span<const double> b,
                                  const ComparisonRule& rule);

/// A mean over trials with its confidence interval by Student's t; the interval is of no width with
/// one trial, so ask only with two. Threads: pure.
struct TrialMean {
  double mean = 0;
  double low = 0;
  double high = 0;
};
TrialMean mean_over_trials(std::span<const double> values, double confidence);

}  // namespace muster

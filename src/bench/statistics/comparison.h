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

/// How finely the trials of each side tell a figure, as a share of it; 0: not known.
struct TrialResolution {
  double a = 0;
  double b = 0;
};

/// The resolution of rates: one answer of a trial's count, as the root mean square of 1 / count
/// over the trials. A rate is a count over a time that begins and ends anywhere between two
/// answers, so a trial of n answers does not tell n from n + 1, however alike the trials are. A
/// count below 1 is taken as 1; without counts it is 0. Threads: pure.
double count_resolution(std::span<const double> counts);

/// Welch's t-test of the logarithms, one value a trial: what varies from run to run (clocks, memory
/// layout, neighbours) is seen only in whole runs, so the samples within one count as one.
///
/// The standard deviation of one trial's logarithm is taken as max(s, resolution), s being that of
/// the trials: a small relative error is that of the logarithm. Where it is 0 on both sides (equal
/// values of no known resolution) nothing shows how sure they are, and the interval is from 0 to
/// infinity.
///
/// The difference is none where the interval reaches into [1 / (1 + tolerance), 1 + tolerance].
/// Errors: InvalidArgument with fewer than two trials a side, or a value that is not above 0.
/// Source: Welch 1947; Georges, Buytaert and Eeckhout 2007, "Statistically Rigorous Java
/// Performance Evaluation", section 3.3. Threads: pure.
Result<Comparison> compare_trials(std::span<const double> a, std::span<const double> b,
                                  const ComparisonRule& rule,
                                  const TrialResolution& resolution = {});

/// A mean over trials with its confidence interval by Student's t; the interval is of no width with
/// one trial, so ask only with two. Threads: pure.
///
/// The standard deviation of one trial is taken as max(s, resolution * mean). The figures are ones
/// that cannot be negative (rates, times, shares), so neither is `low`: it is cut off at 0.
struct TrialMean {
  double mean = 0;
  double low = 0;
  double high = 0;
};
TrialMean mean_over_trials(std::span<const double> values, double confidence,
                           double resolution = 0);

}  // namespace muster

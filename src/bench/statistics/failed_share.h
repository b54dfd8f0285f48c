#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "bench/statistics/comparison.h"

namespace muster {

/// Requests of one trial, and how many of them failed.
struct FailureCount {
  std::uint64_t failed = 0;
  std::uint64_t sent = 0;
};

/// A share with the ends of its confidence interval, all from 0 to 1.
struct ShareEstimate {
  double value = 0;
  double low = 0;
  double high = 0;
};

/// Wilson's score interval of a binomial share; `sent` is above 0.
/// Source: Wilson 1927; Newcombe 1998, "Two-sided confidence intervals for the single proportion",
/// method 3. Threads: pure.
ShareEstimate wilson_interval(const FailureCount& count, double confidence);

/// The share over all requests of some trials, each of which has sent something.
///
/// Requests of trials that are alike count as independent, and the interval is Wilson's. Where the
/// trials differ by more than chance has them do (chi-squared test of homogeneity at 95 %), it also
/// holds Student's over one share a trial: whole runs vary more than the requests within them.
/// Threads: pure.
ShareEstimate share_over_trials(std::span<const FailureCount> trials, double confidence);

/// The ratio of two shares, B over A, by MOVER from the intervals of both. With a tolerance of 0
/// the verdict is that of Newcombe's interval of the difference. The ratio is infinite where
/// nothing of A failed and 1 where nothing of either did; `high` is infinite where A's share may be
/// 0. The difference is none by the rule of `compare_trials`.
///
/// Errors: InvalidArgument with fewer than two trials a side, or one that has sent nothing.
/// Source: Newcombe 1998, "Interval estimation for the difference between independent proportions",
/// method 10; Donner and Zou 2012, "Closed-form confidence intervals for functions of the normal
/// mean and standard deviation", for the ratio. Threads: pure.
Result<Comparison> compare_failures(std::span<const FailureCount> a,
                                    std::span<const FailureCount> b, const ComparisonRule& rule);

}  // namespace muster

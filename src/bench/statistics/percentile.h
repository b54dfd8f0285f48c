#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace muster {

inline constexpr double kUsualConfidence = 0.95;

/// A figure with the ends of its confidence interval. An end is absent where the samples are too
/// few to know it.
struct Estimate {
  double value = 0;
  std::optional<double> low = {};
  std::optional<double> high = {};
};

/// Independent samples that the upper end of a percentile's interval needs at least: 6, 36, 72, 368
/// and 3,688 for the 50th, 90th, 95th, 99th and 99.9th at 95 %.
///
///   the smallest n with share^n <= (1 - confidence) / 2
///
/// Source: Hahn and Meeker 1991, "Statistical Intervals", section 5.2. Threads: pure.
std::uint64_t samples_needed(double share, double confidence = kUsualConfidence);

/// A percentile (the value of rank ceil(n x share)) and an interval between two samples that holds
/// the true one whatever the distribution: as many samples as lie below it are binomial. Each end
/// misses with at most (1 - confidence) / 2. nullopt below `samples_needed`.
///
/// sorted: ascending. effective_count: independent samples that they are worth, at most their
/// number; the interval widens as if there were only so many.
/// Source: Hahn and Meeker 1991, section 5.2; for samples that depend on one another Heidelberger
/// and Lewis 1984, "Quantile Estimation in Dependent Sequences", Operations Research 32.
/// Threads: pure.
std::optional<Estimate> estimate_percentile(std::span<const double> sorted, double share,
                                            double effective_count,
                                            double confidence = kUsualConfidence);

/// What is printed of many samples of one kind, in their unit.
struct Distribution {
  struct Percentile {
    double share = 0;
    std::optional<Estimate> estimate = {};
    double effective_count = 0;
  };

  std::uint64_t count = 0;
  Estimate mean = {};
  double least = 0;
  double most = 0;
  std::vector<Percentile> percentiles = {};  // of `shown_percentiles`

  /// nullopt where the samples are too few.
  const std::optional<Estimate>& percentile(double share) const;
};

/// 0.5, 0.9, 0.95, 0.99, 0.999.
std::span<const double> shown_percentiles();

/// values: in the order of time. Intervals account for samples that depend on their neighbours
/// (effective_count.h). The interval of the mean is cut off at 0 where no value is below it, as
/// with times, which cannot be negative. nullopt without samples. Cost: n log n. Threads: pure.
std::optional<Distribution> summarize(std::span<const double> values,
                                      double confidence = kUsualConfidence);

}  // namespace muster

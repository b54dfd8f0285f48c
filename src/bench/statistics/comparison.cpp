// Trials are compared, not samples: samples within a trial depend on each other, and trials differ
// by more than their samples show. The ratio is taken of logarithms, where it is a difference of
// means with Welch's interval. A difference counts only when the whole interval lies beyond the
// tolerance, so few or noisy trials say nothing instead of something wrong.

#include "bench/statistics/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.h"
#include "bench/statistics/tail_tables.h"

namespace muster {
namespace {

struct Moments {
  double mean = 0;
  double variance_of_mean = 0;
  double degrees = 0;
};

// Equal values have no variance, and a mean that is rounded must not give them one.
Moments moments_of(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  double mean = 0;
  for (const double value : values) mean += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const bool are_equal = std::ranges::all_of(
      values, [first = values.front()](double value) { return value == first; });
  return {.mean = mean,
          .variance_of_mean = are_equal ? 0 : squares / (count - 1) / count,
          .degrees = count - 1};
}

// deviation: what the standard deviation of one value is at least.
Moments no_finer_than(Moments moments, double deviation) {
  const double count = moments.degrees + 1;
  moments.variance_of_mean = std::max(moments.variance_of_mean, deviation * deviation / count);
  return moments;
}

// The degrees of freedom of a difference of means. Source: Welch 1947; Satterthwaite 1946.
double welch_degrees(const Moments& a, const Moments& b) {
  const double sum = a.variance_of_mean + b.variance_of_mean;
  if (sum <= 0) return a.degrees + b.degrees;
  return sum * sum /
         (a.variance_of_mean * a.variance_of_mean / a.degrees +
          b.variance_of_mean * b.variance_of_mean / b.degrees);
}

Result<Moments> log_moments(std::span<const double> values, double resolution) {
  if (values.size() < 2) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("a comparison needs at least two trials a side: {}", values.size())};
  }
  std::vector<double> logs;
  for (const double value : values) {
    if (!(value > 0)) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("only values above 0 have a ratio: {}", value)};
    }
    logs.push_back(std::log(value));
  }
  return no_finer_than(moments_of(logs), resolution);
}

}  // namespace

double count_resolution(std::span<const double> counts) {
  if (counts.empty()) return 0;
  double squares = 0;
  for (const double count : counts) {
    const double share = 1 / std::max(1.0, count);
    squares += share * share;
  }
  return std::sqrt(squares / static_cast<double>(counts.size()));
}

Result<Comparison> compare_trials(std::span<const double> a, std::span<const double> b,
                                  const ComparisonRule& rule, const TrialResolution& resolution) {
  const auto of_a = MUSTER_TRY(log_moments(a, resolution.a));
  const auto of_b = MUSTER_TRY(log_moments(b, resolution.b));
  const double difference = of_b.mean - of_a.mean;
  if (of_a.variance_of_mean + of_b.variance_of_mean <= 0) {
    return Comparison{
        .ratio = std::exp(difference), .low = 0, .high = std::numeric_limits<double>::infinity()};
  }
  const double half = student_quantile(1 - (1 - rule.confidence) / 2, welch_degrees(of_a, of_b)) *
                      std::sqrt(of_a.variance_of_mean + of_b.variance_of_mean);
  Comparison result{.ratio = std::exp(difference),
                    .low = std::exp(difference - half),
                    .high = std::exp(difference + half)};
  if (result.low > 1 + rule.tolerance) result.difference = Difference::Higher;
  if (result.high < 1 / (1 + rule.tolerance)) result.difference = Difference::Lower;
  return result;
}

// A single trial has no spread; its interval is the value itself.
TrialMean mean_over_trials(std::span<const double> values, double confidence, double resolution) {
  MUSTER_CHECK(!values.empty());
  if (values.size() == 1) return {values[0], values[0], values[0]};
  const auto own = moments_of(values);
  const auto moments = no_finer_than(own, resolution * own.mean);
  const double half = student_quantile(1 - (1 - confidence) / 2, moments.degrees) *
                      std::sqrt(moments.variance_of_mean);
  return {moments.mean, std::max(0.0, moments.mean - half), moments.mean + half};
}

}  // namespace muster

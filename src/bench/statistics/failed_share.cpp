// Failures are counts and may be 0, where logarithms end, so their ratio is not that of rates and
// times. Each side gets an interval of its own, and the two are put together.
#include "bench/statistics/failed_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "bench/statistics/tail_tables.h"

namespace muster {
namespace {

constexpr double kAlikeConfidence = 0.95;

double share_of(const FailureCount& count) {
  return static_cast<double>(count.failed) / static_cast<double>(count.sent);
}

FailureCount sum_of(std::span<const FailureCount> trials) {
  FailureCount sum;
  for (const auto& trial : trials) {
    sum.failed += trial.failed;
    sum.sent += trial.sent;
  }
  return sum;
}

// Whether trials differ by more than those of one share do. Source: Pearson 1900.
bool are_alike(std::span<const FailureCount> trials, double share) {
  if (trials.size() < 2 || share <= 0 || share >= 1) return true;
  double sum = 0;
  for (const auto& trial : trials) {
    const double distance = share_of(trial) - share;
    sum += static_cast<double>(trial.sent) * distance * distance / (share * (1 - share));
  }
  const auto degrees = static_cast<double>(trials.size() - 1);
  return sum <= chi_squared_quantile(kAlikeConfidence, degrees);
}

// The ends of the ratio `b` / `a`. The lower one is in the form whose divisor is 0 only where
// nothing of `b` has failed. Source: Donner and Zou 2012.
double ratio_low(const ShareEstimate& a, const ShareEstimate& b) {
  if (b.low <= 0) return 0;
  const double of_b = b.low * (2 * b.value - b.low);
  const double of_a = a.high * (2 * a.value - a.high);
  const double product = a.value * b.value;
  return of_b / (product + std::sqrt(std::max(0.0, product * product - of_b * of_a)));
}

double ratio_high(const ShareEstimate& a, const ShareEstimate& b) {
  if (a.low <= 0) return std::numeric_limits<double>::infinity();
  const double of_b = b.high * (2 * b.value - b.high);
  const double of_a = a.low * (2 * a.value - a.low);
  const double product = a.value * b.value;
  return (product + std::sqrt(std::max(0.0, product * product - of_b * of_a))) / of_a;
}

double ratio_of(double a, double b) {
  if (a > 0) return b / a;
  return b > 0 ? std::numeric_limits<double>::infinity() : 1;
}

Status check_trials(std::span<const FailureCount> trials) {
  if (trials.size() < 2) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("a comparison needs at least two trials a side: {}", trials.size())};
  }
  if (std::ranges::any_of(trials, [](const FailureCount& one) { return one.sent == 0; })) {
    return Error{ErrorKind::InvalidArgument, "a trial that has sent nothing has no failed share"};
  }
  return Done{};
}

}  // namespace

ShareEstimate wilson_interval(const FailureCount& count, double confidence) {
  const double z = normal_quantile(1 - (1 - confidence) / 2);
  const auto sent = static_cast<double>(count.sent);
  const auto failed = static_cast<double>(count.failed);
  const double share = share_of(count);
  const double middle = (failed + z * z / 2) / (sent + z * z);
  const double half = z * std::sqrt(failed * (1 - share) + z * z / 4) / (sent + z * z);
  // At its two ends a share is an end of its interval, which rounding must not move.
  return {.value = share,
          .low = count.failed == 0 ? 0 : middle - half,
          .high = count.failed == count.sent ? 1 : middle + half};
}

ShareEstimate share_over_trials(std::span<const FailureCount> trials, double confidence) {
  auto share = wilson_interval(sum_of(trials), confidence);
  if (are_alike(trials, share.value)) return share;
  std::vector<double> shares;
  for (const auto& trial : trials) shares.push_back(share_of(trial));
  const auto mean = mean_over_trials(shares, confidence);
  share.low = std::min(share.low, mean.low);
  share.high = std::max(share.high, std::min(1.0, mean.high));
  return share;
}

Result<Comparison> compare_failures(std::span<const FailureCount> a,
                                    std::span<const FailureCount> b, const ComparisonRule& rule) {
  MUSTER_TRY(check_trials(a));
  MUSTER_TRY(check_trials(b));
  const auto of_a = share_over_trials(a, rule.confidence);
  const auto of_b = share_over_trials(b, rule.confidence);
  Comparison result{.ratio = ratio_of(of_a.value, of_b.value),
                    .low = ratio_low(of_a, of_b),
                    .high = ratio_high(of_a, of_b)};
  if (result.low > 1 + rule.tolerance) result.difference = Difference::Higher;
  if (result.high < 1 / (1 + rule.tolerance)) result.difference = Difference::Lower;
  return result;
}

}  // namespace muster

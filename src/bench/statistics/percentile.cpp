// A percentile with an interval that assumes no law: of n independent samples the number below the
// true percentile is binomial, so two ranks enclose it. Latencies in sequence are not independent;
// n is replaced by the number of independent samples that the series is worth near the value asked
// for. A percentile that too few samples could enclose is not given at all.

#include "bench/statistics/percentile.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "bench/statistics/effective_count.h"
#include "bench/statistics/tail_tables.h"

namespace muster {
namespace {

constexpr std::array kShown{0.5, 0.9, 0.95, 0.99, 0.999};

// The smallest number for which `holds`, which it then does for all larger ones; `most` if for
// none.
template <typename Claim>
std::uint64_t first_where(std::uint64_t most, Claim holds) {
  std::uint64_t low = 0;
  std::uint64_t high = most;
  while (low < high) {
    const auto middle = low + (high - low) / 2;
    if (holds(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

struct Ranks {
  std::uint64_t low = 0;   // from 1; 0: unknown
  std::uint64_t high = 0;  // above `trials`: unknown
};

// Of `trials` independent samples: the true percentile lies between those of these ranks.
Ranks interval_ranks(std::uint64_t trials, double share, double confidence) {
  const double tail = (1 - confidence) / 2;
  const auto below = [&](std::uint64_t rank) {
    return binomial_cdf(static_cast<std::int64_t>(rank) - 1, trials, share);
  };
  // P(K < low) <= tail for the largest low, P(K >= high) <= tail for the smallest high.
  const auto over = first_where(trials + 1, [&](auto rank) { return below(rank) > tail; });
  const auto high = first_where(trials + 1, [&](auto rank) { return 1 - below(rank) <= tail; });
  return {.low = over - 1, .high = high};
}

// How many independent samples the series is worth where its share below `value` is asked for.
double effective_count_of(std::span<const double> values, double value, double confidence,
                          std::vector<double>& scratch) {
  scratch.clear();
  for (const double one : values) scratch.push_back(one <= value ? 1 : 0);
  const auto series = mean_of_series(scratch);
  const auto count = static_cast<double>(values.size());
  if (series.is_independent || series.variance_of_mean <= 0) return count;
  // A variance from few blocks is itself uncertain: as t is to the normal distribution.
  const double upper = 1 - (1 - confidence) / 2;
  const double widening = student_quantile(upper, static_cast<double>(series.block_count - 1)) /
                          student_quantile(upper, count);
  return std::min(count, series.variance / (series.variance_of_mean * widening * widening));
}

// Without two blocks there is no spread to judge by, and the mean stands without an interval.
Estimate mean_estimate(std::span<const double> values, double least, double confidence) {
  const auto series = mean_of_series(values);
  Estimate mean{.value = series.mean};
  if (series.block_count < 2) return mean;
  const double half =
      std::sqrt(series.variance_of_mean) *
      student_quantile(1 - (1 - confidence) / 2, static_cast<double>(series.block_count - 1));
  // A time cannot be negative, and so its mean cannot either.
  mean.low = least < 0 ? series.mean - half : std::max(0.0, series.mean - half);
  mean.high = series.mean + half;
  return mean;
}

}  // namespace

// As many that the largest sample lies above the percentile with the wanted confidence: share^n <=
// (1 - confidence) / 2.
std::uint64_t samples_needed(double share, double confidence) {
  const double needed = std::log((1 - confidence) / 2) / std::log(share);
  return static_cast<std::uint64_t>(std::ceil(needed));
}

// Ranks are found for the effective number of samples and then scaled to the real one.
std::optional<Estimate> estimate_percentile(std::span<const double> sorted, double share,
                                            double effective_count, double confidence) {
  const auto count = sorted.size();
  if (count < samples_needed(share, confidence)) return std::nullopt;
  const auto rank = std::clamp<std::size_t>(
      static_cast<std::size_t>(std::ceil(share * static_cast<double>(count))), 1, count);
  Estimate estimate{.value = sorted[rank - 1]};
  const auto trials =
      std::min<std::uint64_t>(count, static_cast<std::uint64_t>(std::floor(effective_count)));
  if (trials < 1) return estimate;
  const auto ranks = interval_ranks(trials, share, confidence);
  const double scale = static_cast<double>(count) / static_cast<double>(trials);
  if (ranks.low >= 1) {
    const auto low = static_cast<std::size_t>(static_cast<double>(ranks.low) * scale);
    estimate.low = sorted[std::max<std::size_t>(low, 1) - 1];
  }
  if (ranks.high <= trials) {
    const auto high = static_cast<std::size_t>(std::ceil(static_cast<double>(ranks.high) * scale));
    estimate.high = sorted[std::min(high, count) - 1];
  }
  return estimate;
}

const std::optional<Estimate>& Distribution::percentile(double share) const {
  const auto found = std::ranges::find(percentiles, share, &Percentile::share);
  MUSTER_CHECK(found != percentiles.end());
  return found->estimate;
}

std::span<const double> shown_percentiles() { return kShown; }

std::optional<Distribution> summarize(std::span<const double> values, double confidence) {
  if (values.empty()) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  Distribution result{.count = values.size(),
                      .mean = mean_estimate(values, sorted.front(), confidence),
                      .least = sorted.front(),
                      .most = sorted.back()};
  std::vector<double> scratch;
  for (const double share : kShown) {
    Distribution::Percentile one{.share = share};
    if (values.size() >= samples_needed(share, confidence)) {
      const auto rank =
          static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
      one.effective_count = effective_count_of(values, sorted[std::max<std::size_t>(rank, 1) - 1],
                                               confidence, scratch);
      one.estimate = estimate_percentile(sorted, share, one.effective_count, confidence);
    }
    result.percentiles.push_back(one);
  }
  return result;
}

}  // namespace muster

#include "bench/statistics/percentile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "bench/statistics/queue_laws.h"
#include "bench/statistics/random_stream.h"

namespace muster {
namespace {

// 1, 2, …, count: each value is its own rank.
std::vector<double> ranks(std::size_t count) {
  std::vector<double> values(count);
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

TEST(SamplesNeeded, IsWhatTheUpperEndTakes) {
  EXPECT_EQ(samples_needed(0.5), 6U);
  EXPECT_EQ(samples_needed(0.9), 36U);
  EXPECT_EQ(samples_needed(0.95), 72U);
  EXPECT_EQ(samples_needed(0.99), 368U);
  EXPECT_EQ(samples_needed(0.999), 3688U);
}

TEST(EstimatePercentile, LiesBetweenTheRanksOfTheTables) {
  // P(K <= 39) = 0.0176 and P(K <= 40) = 0.0284 of 100 coins: ranks 40 and 61. Source: Hahn and
  // Meeker 1991, table A.15a.
  const auto median = estimate_percentile(ranks(100), 0.5, 100);
  ASSERT_TRUE(median);
  EXPECT_EQ(median->value, 50);
  EXPECT_EQ(median->low, 40);
  EXPECT_EQ(median->high, 61);
  // Of six coins all show the same with 1 / 64 on each side.
  const auto six = estimate_percentile(ranks(6), 0.5, 6);
  EXPECT_EQ(six->value, 3);
  EXPECT_EQ(six->low, 1);
  EXPECT_EQ(six->high, 6);
}

TEST(EstimatePercentile, IsNothingWithTooFewSamples) {
  for (const auto& [share, needed] : {std::pair(0.5, 6U), {0.9, 36U}, {0.95, 72U}, {0.99, 368U}}) {
    EXPECT_FALSE(estimate_percentile(ranks(needed - 1), share, needed - 1)) << share;
    const auto enough = estimate_percentile(ranks(needed), share, needed);
    ASSERT_TRUE(enough) << share;
    EXPECT_EQ(enough->high, needed);
  }
}

TEST(EstimatePercentile, FewerEffectiveSamplesWidenItOrLeaveAnEndOpen) {
  // 1,000 samples that are worth 100: the ranks of 100, ten times as far.
  const auto wide = estimate_percentile(ranks(1000), 0.5, 100);
  EXPECT_EQ(wide->value, 500);
  EXPECT_EQ(wide->low, 400);
  EXPECT_EQ(wide->high, 610);
  const auto open = estimate_percentile(ranks(1000), 0.99, 200);
  EXPECT_EQ(open->value, 990);
  EXPECT_TRUE(open->low);
  EXPECT_FALSE(open->high);
}

TEST(Summarize, NamesWhatThereIs) {
  const auto summary = summarize(ranks(100));
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->count, 100U);
  EXPECT_EQ(summary->mean.value, 50.5);
  EXPECT_EQ(summary->least, 1);
  EXPECT_EQ(summary->most, 100);
  EXPECT_EQ(summary->percentile(0.95)->value, 95);
  EXPECT_FALSE(summary->percentile(0.99));
  EXPECT_FALSE(summarize({}));
}

// 1 and 3: a mean of 2 with an error of 1, and t of one degree is 12.706. Two requests of a trial
// have taken some time, however little is known of how long others take.
TEST(Summarize, TheMeanOfTimesIsNotBelowZero) {
  const auto few = summarize(std::vector<double>{1, 3});
  EXPECT_EQ(few->mean.low, 0);
  EXPECT_NEAR(*few->mean.high, 2 + 12.706, 1e-3);
  // Values that may be negative have the whole interval.
  EXPECT_NEAR(*summarize(std::vector<double>{-1, 1})->mean.low, -12.706, 1e-3);
}

// The full size is `./accept bench.4`.
TEST(Summarize, TheIntervalHoldsTheTruthAsOftenAsItSays) {
  constexpr int kRuns = 1000;
  const double truth = -std::log(0.05);  // the 95th percentile of the exponential law
  int covered = 0;
  for (int run = 0; run < kRuns; ++run) {
    RandomStream random(static_cast<std::uint64_t>(run));
    std::vector<double> values(200);
    for (double& value : values) value = random.exponential();
    const auto estimate = *summarize(values)->percentile(0.95);
    covered += *estimate.low <= truth && (!estimate.high || truth < *estimate.high);
  }
  EXPECT_GE(covered, 930);
  EXPECT_LE(covered, 990);
}

// Requests that wait in one queue are alike: an interval that took them for independent would hold
// the truth in a third of the runs.
TEST(Summarize, TheIntervalOfAQueueHoldsItToo) {
  constexpr int kRuns = 30;
  constexpr double kLoad = 0.8;
  const double truth = sojourn_percentile(ServiceLaw::Exponential, 1, kLoad, 0.95);
  int covered = 0;
  for (std::uint64_t run = 0; run < kRuns; ++run) {
    RandomStream gaps(2 * run);
    ServiceTimes times(ServiceLaw::Exponential, 1, 2 * run + 1);
    std::vector<double> arrivals;
    std::vector<double> services;
    double at = 0;
    for (int i = 0; i < 20'000; ++i) {
      arrivals.push_back(at += gaps.exponential() / kLoad);
      services.push_back(times.next());
    }
    const auto estimate = *summarize(lindley_sojourns(arrivals, services))->percentile(0.95);
    covered +=
        (!estimate.low || *estimate.low <= truth) && (!estimate.high || truth <= *estimate.high);
  }
  EXPECT_GE(covered, kRuns * 85 / 100);
}

}  // namespace
}  // namespace muster

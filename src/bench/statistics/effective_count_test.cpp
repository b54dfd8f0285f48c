#include "bench/statistics/effective_count.h"

#include <gtest/gtest.h>

#include <vector>

#include "bench/statistics/random_stream.h"

namespace muster {
namespace {

std::vector<double> independent_values(std::size_t count, std::uint64_t seed) {
  RandomStream random(seed);
  std::vector<double> values(count);
  for (double& value : values) value = random.exponential();
  return values;
}

TEST(MeanOfSeries, IndependentSamplesCountInFull) {
  const auto values = independent_values(1 << 14, 1);
  const auto series = mean_of_series(values);
  EXPECT_TRUE(series.is_independent);
  EXPECT_EQ(series.block_count, values.size());
  EXPECT_NEAR(series.variance_of_mean, series.variance / static_cast<double>(values.size()), 1e-7);
}

TEST(MeanOfSeries, SeldomTakesIndependentSamplesForAlike) {
  int alike = 0;
  constexpr int kRuns = 300;
  for (int run = 0; run < kRuns; ++run) {
    alike += !mean_of_series(independent_values(1000, 100 + static_cast<std::uint64_t>(run)))
                  .is_independent;
  }
  // The test is at 99 %; several levels are looked at.
  EXPECT_LE(alike, kRuns / 20);
}

// x_i = 0.9 x_{i-1} + noise: the variance of the mean is (1 + 0.9) / (1 - 0.9) = 19 times that of
// independent samples.
TEST(MeanOfSeries, SamplesThatFollowTheirNeighboursCountLess) {
  RandomStream random(7);
  std::vector<double> values;
  double value = 0;
  for (int i = 0; i < 1 << 17; ++i) values.push_back(value = 0.9 * value + random.normal());
  const auto series = mean_of_series(values);
  EXPECT_FALSE(series.is_independent);
  const double factor =
      series.variance_of_mean * static_cast<double>(values.size()) / series.variance;
  EXPECT_GT(factor, 12);
  EXPECT_LT(factor, 28);
}

TEST(MeanOfSeries, TakesConstantAndFewSamples) {
  const std::vector<double> constant(100, 2.0);
  EXPECT_EQ(mean_of_series(constant).mean, 2);
  EXPECT_EQ(mean_of_series(constant).variance_of_mean, 0);
  EXPECT_TRUE(mean_of_series(constant).is_independent);
  const std::vector<double> few{1, 3};
  EXPECT_EQ(mean_of_series(few).mean, 2);
  EXPECT_EQ(mean_of_series(few).variance_of_mean, 1);  // of 1 and 3: variance 1, by two less one
  EXPECT_EQ(mean_of_series(std::vector<double>{5}).mean, 5);
}

}  // namespace
}  // namespace muster

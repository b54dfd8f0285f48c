#include "bench/statistics/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace muster {
namespace {

// Logarithms 0 and 2 against 10 and 12: a difference of 10 with a standard error of the square root
// of 2 and two degrees of freedom.
const std::vector<double> kA{std::exp(0), std::exp(2)};
const std::vector<double> kB{std::exp(10), std::exp(12)};

TEST(CompareTrials, IsWelchsTestOfLogarithms) {
  const auto result = compare_trials(kA, kB, {.confidence = 0.9});
  ASSERT_TRUE(result);
  const double half = 2.91999 * std::sqrt(2);
  EXPECT_NEAR(std::log(result->ratio), 10, 1e-9);
  EXPECT_NEAR(std::log(result->low), 10 - half, 1e-4);
  EXPECT_NEAR(std::log(result->high), 10 + half, 1e-4);
  EXPECT_EQ(result->difference, Difference::Higher);
  EXPECT_EQ(compare_trials(kB, kA, {.confidence = 0.9})->difference, Difference::Lower);
  // At 99 % the half width is 14: two trials a side say nothing.
  EXPECT_EQ(compare_trials(kA, kB, {.confidence = 0.99})->difference, Difference::None);
}

TEST(CompareTrials, TreatsSmallDifferencesAsNoneWhereAsked) {
  const std::vector<double> a{100, 100.01, 99.99};
  const std::vector<double> b{102, 102.01, 101.99};
  EXPECT_EQ(compare_trials(a, b, {})->difference, Difference::Higher);
  EXPECT_EQ(compare_trials(a, b, {.tolerance = 0.03})->difference, Difference::None);
  EXPECT_EQ(compare_trials(b, a, {})->difference, Difference::Lower);
  EXPECT_EQ(compare_trials(b, a, {.tolerance = 0.03})->difference, Difference::None);
}

TEST(CompareTrials, EqualTrialsDoNotDiffer) {
  const std::vector<double> same{5, 5};
  const auto result = compare_trials(same, same, {});
  EXPECT_EQ(result->difference, Difference::None);
  EXPECT_EQ(result->ratio, 1);
}

TEST(CompareTrials, RefusesWhatItCannotCompare) {
  const std::vector<double> one{1};
  const std::vector<double> zero{0, 1};
  for (const auto& bad : {one, zero}) {
    const auto result = compare_trials(kA, bad, {});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::InvalidArgument);
  }
  EXPECT_EQ(compare_trials(one, kA, {}).error().message,
            "a comparison needs at least two trials a side: 1");
}

TEST(MeanOverTrials, HasStudentsInterval) {
  // 1, 2, 3: mean 2, standard error 1 / sqrt(3), t of two degrees 4.303.
  const auto mean = mean_over_trials(std::vector<double>{1, 2, 3}, 0.95);
  EXPECT_EQ(mean.mean, 2);
  EXPECT_NEAR(mean.high - 2, 4.303 / std::sqrt(3), 1e-3);
  EXPECT_NEAR(2 - mean.low, 4.303 / std::sqrt(3), 1e-3);
}

}  // namespace
}  // namespace muster

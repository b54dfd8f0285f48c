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

// Answers in two seconds: 32, 32 against 30, 30. One more or less is 3 %, and two trials a side
// have a t of 9.92 to 10: a half width of 0.32 about ln(15 / 16) = -0.065.
TEST(CompareTrials, ARateIsNoFinerThanOneAnswer) {
  const std::vector<double> a{16, 16};
  const std::vector<double> b{15, 15};
  const auto few = compare_trials(a, b, {}, {.a = 1.0 / 32, .b = 1.0 / 30});
  ASSERT_TRUE(few) << few.error().message;
  EXPECT_EQ(few->difference, Difference::None);
  EXPECT_NEAR(few->ratio, 0.9375, 1e-12);
  EXPECT_NEAR(std::log(few->high), -0.0645 + 0.3235, 0.003);
  const auto many = compare_trials(a, b, {}, {.a = 1.0 / 1600, .b = 1.0 / 1500});
  EXPECT_EQ(many->difference, Difference::Lower);
  // Trials that differ by more than an answer are as wide as without.
  const ComparisonRule rule{.confidence = 0.9};
  EXPECT_EQ(compare_trials(kA, kB, rule, {.a = 0.5, .b = 0.5})->high,
            compare_trials(kA, kB, rule)->high);
}

// Thirds of a logarithm do not add up to it, and the rounding is no spread.
TEST(CompareTrials, EqualTrialsOfUnknownResolutionSayNothing) {
  const std::vector<double> a{16, 16, 16};
  const std::vector<double> b{15, 15, 15};
  const auto result = compare_trials(a, b, {});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->difference, Difference::None);
  EXPECT_EQ(result->low, 0);
  EXPECT_TRUE(std::isinf(result->high));
}

TEST(CountResolution, IsOneAnswerOfTheCounts) {
  EXPECT_EQ(count_resolution({}), 0);
  EXPECT_DOUBLE_EQ(count_resolution(std::vector<double>{32, 32}), 1.0 / 32);
  EXPECT_DOUBLE_EQ(count_resolution(std::vector<double>{1, 7}), 5.0 / 7);  // 1 and 1/49: 25/49
  EXPECT_DOUBLE_EQ(count_resolution(std::vector<double>{0, 0.5}), 1);
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
  // 11, 12, 13: mean 12, standard error 1 / sqrt(3), t of two degrees 4.303.
  const auto mean = mean_over_trials(std::vector<double>{11, 12, 13}, 0.95);
  EXPECT_DOUBLE_EQ(mean.mean, 12);
  EXPECT_NEAR(mean.high - 12, 4.303 / std::sqrt(3), 1e-3);
  EXPECT_NEAR(12 - mean.low, 4.303 / std::sqrt(3), 1e-3);
}

TEST(MeanOverTrials, DoesNotGoBelowZero) {
  // 1, 2, 3: the half width of 2.48 is more than the mean of 2.
  const auto mean = mean_over_trials(std::vector<double>{1, 2, 3}, 0.95);
  EXPECT_EQ(mean.low, 0);
  EXPECT_NEAR(mean.high, 2 + 4.303 / std::sqrt(3), 1e-3);
}

TEST(MeanOverTrials, IsNoFinerThanItsResolution) {
  // A tenth of 16 is 1.6; t of one degree is 12.706.
  const auto mean = mean_over_trials(std::vector<double>{16, 16}, 0.95, 0.1);
  EXPECT_NEAR(mean.high, 16 + 12.706 * 1.6 / std::sqrt(2), 1e-3);
}

}  // namespace
}  // namespace muster

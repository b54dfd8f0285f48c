#include "bench/statistics/failed_share.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace muster {
namespace {

using Trials = std::vector<FailureCount>;

// Source: Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I.
TEST(WilsonInterval, IsThatOfTheTable) {
  const auto some = wilson_interval({.failed = 81, .sent = 263}, 0.95);
  EXPECT_NEAR(some.low, 0.2553, 5e-5);
  EXPECT_NEAR(some.high, 0.3662, 5e-5);
  const auto none = wilson_interval({.failed = 0, .sent = 20}, 0.95);
  EXPECT_EQ(none.low, 0);
  EXPECT_NEAR(none.high, 0.1611, 5e-5);
  const auto all = wilson_interval({.failed = 20, .sent = 20}, 0.95);
  EXPECT_NEAR(all.low, 1 - 0.1611, 5e-5);
  EXPECT_EQ(all.high, 1);
}

// 20 of 100 twice is 40 of 200. 0 of 100 and 40 of 100 has a chi-squared of 2 x 100 x 0.04 / 0.16,
// which is 50: Student's interval of two trials then holds everything.
TEST(ShareOverTrials, TrialsThatDifferCountAsTrials) {
  const auto alike = share_over_trials(Trials{{20, 100}, {20, 100}}, 0.95);
  const auto pooled = wilson_interval({.failed = 40, .sent = 200}, 0.95);
  EXPECT_EQ(alike.low, pooled.low);
  EXPECT_EQ(alike.high, pooled.high);
  const auto apart = share_over_trials(Trials{{0, 100}, {40, 100}}, 0.95);
  EXPECT_DOUBLE_EQ(apart.value, 0.2);
  EXPECT_EQ(apart.low, 0);
  EXPECT_EQ(apart.high, 1);
}

// Wilson's upper end of 0 of 100 is 3.8415 / 103.8415 = 0.036994, the lower end of 30 of 100 is
// 0.218949: the ratio is at least sqrt(0.218949 x (0.6 - 0.218949)) / 0.036994 = 7.808.
TEST(CompareFailures, ASideWithoutFailuresHasABoundOfTheRatio) {
  const Trials none{{0, 50}, {0, 50}};
  const Trials some{{15, 50}, {15, 50}};
  const auto worse = compare_failures(none, some, {.confidence = 0.95});
  ASSERT_TRUE(worse) << worse.error().message;
  EXPECT_TRUE(std::isinf(worse->ratio));
  EXPECT_NEAR(worse->low, 7.808, 2e-3);
  EXPECT_TRUE(std::isinf(worse->high));
  EXPECT_EQ(worse->difference, Difference::Higher);
  const auto better = compare_failures(some, none, {.confidence = 0.95});
  ASSERT_TRUE(better) << better.error().message;
  EXPECT_EQ(better->ratio, 0);
  EXPECT_EQ(better->low, 0);
  EXPECT_NEAR(better->high, 1 / 7.808, 1e-4);
  EXPECT_EQ(better->difference, Difference::Lower);
  const auto same = compare_failures(none, none, {});
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_EQ(same->ratio, 1);
  EXPECT_EQ(same->difference, Difference::None);
}

// Source: Newcombe 1998, "Interval estimation for the difference between independent proportions",
// table II: 56 of 70 against 48 of 80 differ by 0.0524 to 0.3339 at 95 %, and 9 of 10 against 3 of
// 10 by 0.1705 to 0.8090; 5 of 56 against 0 of 29 by -0.0381 to 0.1926, which is no difference.
TEST(CompareFailures, ItsVerdictIsNewcombes) {
  const auto verdict = [](FailureCount a, FailureCount b) {
    // In two halves, which are alike.
    const Trials of_a{{a.failed - a.failed / 2, a.sent - a.sent / 2}, {a.failed / 2, a.sent / 2}};
    const Trials of_b{{b.failed - b.failed / 2, b.sent - b.sent / 2}, {b.failed / 2, b.sent / 2}};
    const auto result = compare_failures(of_a, of_b, {.confidence = 0.95});
    EXPECT_TRUE(result) << result.error().message;
    return result ? result->difference : Difference::None;
  };
  EXPECT_EQ(verdict({48, 80}, {56, 70}), Difference::Higher);
  EXPECT_EQ(verdict({56, 70}, {48, 80}), Difference::Lower);
  EXPECT_EQ(verdict({3, 10}, {9, 10}), Difference::Higher);
  EXPECT_EQ(verdict({0, 29}, {5, 56}), Difference::None);
}

// 10 % against 11 % of 100,000: no more than a tenth apart is none where that is asked for.
TEST(CompareFailures, TreatsSmallDifferencesAsNoneWhereAsked) {
  const Trials a{{5000, 50000}, {5000, 50000}};
  const Trials b{{5500, 50000}, {5500, 50000}};
  EXPECT_EQ(compare_failures(a, b, {})->difference, Difference::Higher);
  EXPECT_EQ(compare_failures(a, b, {.tolerance = 0.1})->difference, Difference::None);
}

// A burst in one trial of two is not yet what B does.
TEST(CompareFailures, OneBadTrialOfTwoSaysNothing) {
  const auto result =
      compare_failures(Trials{{0, 1000}, {0, 1000}}, Trials{{0, 1000}, {100, 1000}}, {});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->difference, Difference::None);
}

TEST(CompareFailures, RefusesWhatItCannotCompare) {
  const Trials two{{1, 10}, {1, 10}};
  EXPECT_EQ(compare_failures(Trials{{1, 10}}, two, {}).error().message,
            "a comparison needs at least two trials a side: 1");
  EXPECT_EQ(compare_failures(two, Trials{{1, 10}, {0, 0}}, {}).error().message,
            "a trial that has sent nothing has no failed share");
}

}  // namespace
}  // namespace muster

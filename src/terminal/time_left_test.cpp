#include "terminal/time_left.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace muster {
namespace {

TimePoint at(double seconds) {
  return TimePoint(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
}

TEST(TimeLeft, IsWhatTheSpeedSays) {
  TimeLeft left;
  std::optional<double> told;
  // A hundredth a second: after 20 s, 0.8 are left, which is 80 s.
  for (int tick = 0; tick <= 200; ++tick) told = left.add(at(tick * 0.1), tick * 0.001);
  ASSERT_TRUE(told);
  EXPECT_NEAR(*told, 80, 0.1);
}

TEST(TimeLeft, SaysNothingBeforeTwoSecondsOfGrowth) {
  TimeLeft left;
  EXPECT_FALSE(left.add(at(0), 0));
  EXPECT_FALSE(left.add(at(30), 0)) << "nothing has grown: the workers start";
  EXPECT_FALSE(left.add(at(30.5), 0.01));
  EXPECT_FALSE(left.add(at(32.4), 0.02));
  EXPECT_TRUE(left.add(at(32.6), 0.02));
}

TEST(TimeLeft, DoesNotCountTheStartOfTheJobAsSlowness) {
  TimeLeft left;
  left.add(at(0), 0.5);  // resumed
  std::optional<double> told;
  for (int tick = 1; tick <= 100; ++tick) {
    told = left.add(at(60 + tick * 0.1), 0.5 + tick * 0.002);  // 0.02 a second
  }
  ASSERT_TRUE(told);
  EXPECT_NEAR(*told, 0.3 / 0.02, 0.2);
}

// Batches that end every 0.7 s, one in three twice as large, as two devices finish them.
TEST(TimeLeft, DoesNotJumpWithEachBatch) {
  TimeLeft left;
  double share = 0;
  std::vector<double> told;
  for (int tick = 0; tick < 600; ++tick) {
    if (tick % 7 == 0) share += tick % 21 == 0 ? 0.012 : 0.006;
    if (const auto now = left.add(at(tick * 0.1), share)) told.push_back(*now);
  }
  ASSERT_GT(told.size(), 500U);
  double largest_rise = 0;
  for (std::size_t i = 10; i < told.size(); ++i) {
    largest_rise = std::max(largest_rise, told[i] - told[i - 10]);
  }
  EXPECT_LT(largest_rise, 1.5) << "within a second, it goes down, or up a little";
  // 0.024 in 2.1 s; what is left of the whole takes (1 - share) of the time that all of it takes.
  EXPECT_NEAR(told.back(), (1 - share) * 2.1 / 0.024, 3);
}

TEST(TimeLeft, FollowsAJobThatBecomesSlower) {
  TimeLeft left;
  double share = 0;
  std::optional<double> told;
  for (int tick = 0; tick < 1000; ++tick) {
    share += tick < 300 ? 0.001 : 0.0002;
    told = left.add(at(tick * 0.1), share);
  }
  ASSERT_TRUE(told);
  EXPECT_NEAR(*told / ((1 - share) / 0.002), 1, 0.1);
}

TEST(TimeLeft, DoesNotGuessAtDays) {
  TimeLeft left;
  std::optional<double> told;
  for (int tick = 0; tick < 100; ++tick) told = left.add(at(tick), 1e-9 * tick);
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace muster

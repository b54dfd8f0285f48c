#include "coordinator/restart_policy.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr RestartPolicy::Death kKilled{.was_ready = true, .is_own_fault = false};
constexpr RestartPolicy::Death kFailedStart{.was_ready = false, .is_own_fault = true};

TEST(RestartPolicy, RestartsAtOnceWhileBatchesAreServedInBetween) {
  RestartPolicy policy;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(policy.on_death(TimePoint(milliseconds(10 * i)), kKilled), Duration{0});
    policy.on_batch_served();
  }
}

TEST(RestartPolicy, BacksOffFromTheThirdDeathInTenSeconds) {
  RestartPolicy policy;
  EXPECT_EQ(policy.on_death(TimePoint(seconds(0)), kKilled), Duration{0});
  EXPECT_EQ(policy.on_death(TimePoint(seconds(1)), kKilled), Duration{0});
  EXPECT_EQ(policy.on_death(TimePoint(seconds(2)), kKilled), Duration(milliseconds(100)));
  EXPECT_EQ(policy.on_death(TimePoint(seconds(3)), kKilled), Duration(milliseconds(200)));
  policy.on_batch_served();
  EXPECT_EQ(policy.on_death(TimePoint(seconds(4)), kKilled), Duration{0});
}

TEST(RestartPolicy, ForgetsDeathsAfterTenSeconds) {
  RestartPolicy policy;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(policy.on_death(TimePoint(seconds(6 * i)), kKilled), Duration{0});
  }
}

TEST(RestartPolicy, NeverWaitsLongerThanThirtySeconds) {
  RestartPolicy policy;
  std::optional<Duration> delay;
  for (int i = 0; i < 20; ++i) delay = policy.on_death(TimePoint(milliseconds(i)), kKilled);
  EXPECT_EQ(delay, Duration(seconds(30)));
}

TEST(RestartPolicy, GivesUpAWorkerThatCannotStart) {
  RestartPolicy policy;
  EXPECT_TRUE(policy.on_death(TimePoint(seconds(0)), kFailedStart));
  EXPECT_TRUE(policy.on_death(TimePoint(seconds(20)), kFailedStart));
  EXPECT_FALSE(policy.on_death(TimePoint(seconds(40)), kFailedStart));
}

TEST(RestartPolicy, AServerBacksOffFromTheThirdFailedStartAndNeverGivesUp) {
  RestartPolicy policy(/*gives_up=*/false);
  EXPECT_EQ(policy.on_death(TimePoint(seconds(0)), kFailedStart), Duration{0});
  EXPECT_EQ(policy.on_death(TimePoint(seconds(20)), kFailedStart), Duration{0});
  EXPECT_EQ(policy.on_death(TimePoint(seconds(40)), kFailedStart), Duration(milliseconds(100)));
  EXPECT_EQ(policy.on_death(TimePoint(seconds(60)), kFailedStart), Duration(milliseconds(200)));
  policy.on_batch_served();
  EXPECT_EQ(policy.on_death(TimePoint(seconds(80)), kFailedStart), Duration{0});
}

TEST(RestartPolicy, AKillFromOutsideDuringTheStartDoesNotCountAsFailing) {
  RestartPolicy policy;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(
        policy.on_death(TimePoint(seconds(20 * i)), {.was_ready = false, .is_own_fault = false}));
  }
}

TEST(RestartPolicy, GivesUpADeviceThatFailsAlthoughItStarts) {
  constexpr RestartPolicy::Death kAtFault{
      .was_ready = true, .is_own_fault = true, .is_at_fault = true};
  RestartPolicy policy;
  EXPECT_TRUE(policy.on_death(TimePoint(seconds(0)), kAtFault));
  policy.on_batch_served();
  EXPECT_TRUE(policy.on_death(TimePoint(seconds(20)), kAtFault));
  EXPECT_FALSE(policy.on_death(TimePoint(seconds(40)), kAtFault));

  RestartPolicy healed;
  EXPECT_TRUE(healed.on_death(TimePoint(seconds(0)), kAtFault));
  EXPECT_TRUE(healed.on_death(TimePoint(seconds(20)), kAtFault));
  for (int i = 0; i < 100; ++i) healed.on_batch_served();
  EXPECT_TRUE(healed.on_death(TimePoint(seconds(40)), kAtFault));

  RestartPolicy innocent;
  EXPECT_TRUE(innocent.on_death(TimePoint(seconds(0)), kAtFault));
  EXPECT_TRUE(innocent.on_death(TimePoint(seconds(20)), kAtFault));
  innocent.on_text_found();
  EXPECT_TRUE(innocent.on_death(TimePoint(seconds(40)), kAtFault));
}

}  // namespace
}  // namespace muster

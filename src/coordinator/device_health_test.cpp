#include "coordinator/device_health.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr ModelId kModel = 1;

/// Twenty batches of 1,000 tokens, 100 ms each.
DeviceHealth taught() {
  DeviceHealth health;
  for (int i = 0; i < 20; ++i) health.on_served(kModel, 1000, milliseconds(100));
  return health;
}

TEST(CalibrationTest, KnowsNothingBeforeTheFirstBatch) { EXPECT_FALSE(Calibration().predict(100)); }

TEST(CalibrationTest, PredictsASizeFromItsLikes) {
  Calibration calibration;
  calibration.learn(1000, milliseconds(100));
  calibration.learn(8, milliseconds(2));
  EXPECT_EQ(calibration.predict(1000), Duration(milliseconds(100)));
  EXPECT_EQ(calibration.predict(8), Duration(milliseconds(2)));
  // 100 tokens were never seen: at most what a thousand take.
  EXPECT_EQ(calibration.predict(100), Duration(milliseconds(100)));
}

TEST(CalibrationTest, PredictsALargerSizeByTheRatioOfTokens) {
  Calibration calibration;
  calibration.learn(1000, milliseconds(100));
  EXPECT_EQ(calibration.predict(4000), Duration(milliseconds(400)));
}

TEST(DeviceHealthTest, ThreeSlowBatchesInARowOfHalfASecondAreSlow) {
  DeviceHealth health;
  for (int i = 0; i < 20; ++i) health.on_served(kModel, 1000, milliseconds(30));
  health.on_served(kModel, 1000, milliseconds(170));
  health.on_served(kModel, 1000, milliseconds(170));
  EXPECT_TRUE(health.looks_slow());
  EXPECT_FALSE(health.is_slow(Duration{0}));
  health.on_served(kModel, 1000, milliseconds(170));
  EXPECT_TRUE(health.is_slow(Duration{0}));
}

TEST(DeviceHealthTest, ManyShortSlowBatchesNeedHalfASecond) {
  DeviceHealth health;
  for (int i = 0; i < 20; ++i) health.on_served(kModel, 16, milliseconds(1));
  for (int i = 0; i < 49; ++i) {
    health.on_served(kModel, 16, milliseconds(10));
    EXPECT_FALSE(health.is_slow(Duration{0})) << i;
  }
  health.on_served(kModel, 16, milliseconds(10));
  EXPECT_TRUE(health.is_slow(Duration{0}));
}

TEST(DeviceHealthTest, OneSlowBatchAndTheOneThatRunsAreSlowAfterEightTenths) {
  auto health = taught();
  health.on_served(kModel, 1000, milliseconds(600));
  EXPECT_FALSE(health.is_slow(milliseconds(199)));
  EXPECT_EQ(health.slow_in(milliseconds(50)), Duration(milliseconds(150)));
  EXPECT_TRUE(health.is_slow(milliseconds(200)));
}

TEST(DeviceHealthTest, OneBatchInTimeEndsTheRow) {
  auto health = taught();
  health.on_served(kModel, 1000, milliseconds(600));
  health.on_served(kModel, 1000, milliseconds(499));
  EXPECT_FALSE(health.looks_slow());
  EXPECT_FALSE(health.slow_in(Duration{0}));
  EXPECT_FALSE(health.is_slow(seconds(10)));
}

// What others take of a GPU's memory makes its passes smaller and its batches longer.
TEST(DeviceHealthTest, ABatchThatWasCutForWantOfMemoryEndsTheRow) {
  auto health = taught();
  for (int i = 0; i < 2; ++i) {
    health.on_served(kModel, 1000, milliseconds(501));
    EXPECT_TRUE(health.looks_slow());
    health.on_cut();
    EXPECT_FALSE(health.looks_slow());
    EXPECT_FALSE(health.is_slow(seconds(10)));
  }
  EXPECT_EQ(health.predict(kModel, 1000), Duration(milliseconds(100)));
}

TEST(DeviceHealthTest, WhatIsSlowIsNotLearnt) {
  auto health = taught();
  for (int i = 0; i < 100; ++i) health.on_served(kModel, 1000, milliseconds(1000));
  EXPECT_EQ(health.predict(kModel, 1000), Duration(milliseconds(100)));
}

TEST(DeviceHealthTest, TheFirstTwentyBatchesTeachAndAreNotJudged) {
  DeviceHealth health;
  health.on_served(kModel, 1000, milliseconds(1));
  for (int i = 0; i < 19; ++i) health.on_served(kModel, 1000, milliseconds(100));
  EXPECT_FALSE(health.looks_slow());
}

TEST(DeviceHealthTest, EachModelHasItsOwnMeasure) {
  auto health = taught();
  for (int i = 0; i < 20; ++i) health.on_served(2, 1000, seconds(1));
  EXPECT_FALSE(health.looks_slow());
  EXPECT_EQ(health.predict(kModel, 1000), Duration(milliseconds(100)));
}

TEST(DeviceHealthTest, ACanaryIsInTimeWithinTwiceItsCalibration) {
  const auto health = taught();
  EXPECT_TRUE(health.is_in_time(kModel, 1000, milliseconds(200)));
  EXPECT_FALSE(health.is_in_time(kModel, 1000, milliseconds(201)));
  EXPECT_TRUE(DeviceHealth().is_in_time(kModel, 1000, seconds(100)));
}

TEST(SlowQuarantineTest, CanariesComeLaterAndLaterUntilOneIsGood) {
  const TimePoint start{seconds(100)};
  SlowQuarantine quarantine(start);
  EXPECT_EQ(quarantine.canary_at(), start + seconds(1));
  quarantine.on_canary_sent(start + seconds(1));
  EXPECT_FALSE(quarantine.on_canary(start + seconds(1), false));
  EXPECT_EQ(quarantine.canary_at(), start + seconds(3));
  quarantine.on_canary_sent(start + seconds(3));
  EXPECT_EQ(quarantine.canary_at(), start + seconds(7));
  EXPECT_FALSE(quarantine.on_canary(start + seconds(3), true));
  EXPECT_EQ(quarantine.canary_at(), start + seconds(4));
  EXPECT_EQ(quarantine.restart_at(), start + seconds(10));
}

TEST(SlowQuarantineTest, TwoGoodCanariesInARowEndIt) {
  const TimePoint start{seconds(100)};
  SlowQuarantine quarantine(start);
  EXPECT_FALSE(quarantine.on_canary(start, true));
  EXPECT_FALSE(quarantine.on_canary(start, false));
  EXPECT_FALSE(quarantine.on_canary(start, true));
  EXPECT_TRUE(quarantine.on_canary(start, true));
}

TEST(SlowQuarantineTest, CanariesAreNeverMoreThanThirtySecondsApart) {
  const TimePoint start{seconds(100)};
  SlowQuarantine quarantine(start);
  for (int i = 0; i < 20; ++i) quarantine.on_canary_sent(start);
  EXPECT_EQ(quarantine.canary_at(), start + seconds(30));
}

}  // namespace
}  // namespace muster

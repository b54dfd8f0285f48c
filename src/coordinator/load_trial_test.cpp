#include "coordinator/load_trial.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;

TEST(LoadTrial, GrowsUntilARoundIsLongEnoughToBeMeasured) {
  LoadTrial trial(20, /*lane_count=*/1, /*tokens_most=*/4096);
  EXPECT_EQ(trial.round().text_count, 1U);
  auto measure = trial.on_batch(milliseconds(1));
  ASSERT_TRUE(measure);
  EXPECT_EQ(measure->token_count, 20U);
  EXPECT_EQ(measure->engine, milliseconds(1));
  EXPECT_FALSE(trial.is_done());
  EXPECT_EQ(trial.round().text_count, 8U);
  ASSERT_TRUE(trial.on_batch(milliseconds(8)));
  EXPECT_EQ(trial.round().text_count, 40U);  // 1 ms each: 40 texts take the 40 ms allowed
  measure = trial.on_batch(milliseconds(40));
  ASSERT_TRUE(measure);
  EXPECT_EQ(measure->token_count, 800U);
  EXPECT_TRUE(trial.is_done());
}

TEST(LoadTrial, AllLanesComputeTogetherAndTheirMeanCounts) {
  LoadTrial trial(20, /*lane_count=*/3, /*tokens_most=*/4096);
  EXPECT_EQ(trial.round().batch_count, 3U);
  EXPECT_FALSE(trial.on_batch(milliseconds(30)));
  EXPECT_FALSE(trial.on_batch(milliseconds(40)));
  const auto measure = trial.on_batch(milliseconds(50));
  ASSERT_TRUE(measure);
  EXPECT_EQ(measure->engine, milliseconds(40));
  EXPECT_TRUE(trial.is_done());
}

TEST(LoadTrial, NoBatchIsLargerThanTheDeviceGets) {
  LoadTrial trial(20, 1, /*tokens_most=*/100);
  (void)trial.on_batch(std::chrono::microseconds(10));
  EXPECT_EQ(trial.round().text_count, 5U);
  (void)trial.on_batch(std::chrono::microseconds(50));
  EXPECT_TRUE(trial.is_done());
}

// Else the mean of a cut batch and whole ones would be learnt as the device's speed.
TEST(LoadTrial, ARoundIsCutWhereOneOfItsBatchesWas) {
  LoadTrial trial(20, 2, 4096);
  EXPECT_FALSE(trial.on_batch(milliseconds(4), /*is_cut=*/true));
  auto measure = trial.on_batch(milliseconds(1));
  ASSERT_TRUE(measure);
  EXPECT_TRUE(measure->is_cut);
  ASSERT_FALSE(trial.is_done());
  EXPECT_FALSE(trial.on_batch(milliseconds(1)));
  measure = trial.on_batch(milliseconds(1));
  ASSERT_TRUE(measure);
  EXPECT_FALSE(measure->is_cut);
}

TEST(LoadTrial, ASlowModelIsMeasuredByOneText) {
  LoadTrial trial(20, 1, 4096);
  ASSERT_TRUE(trial.on_batch(std::chrono::seconds(2)));
  EXPECT_TRUE(trial.is_done());
}

TEST(LoadTrial, EndsAlsoWhereNothingTakesTime) {
  LoadTrial trial(1, 1, 1U << 30U);
  int rounds = 1;
  while (trial.on_batch(Duration{0}) && !trial.is_done()) ++rounds;
  EXPECT_EQ(rounds, 5);
}

}  // namespace
}  // namespace muster

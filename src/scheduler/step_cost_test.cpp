#include "scheduler/step_cost.h"

#include <gtest/gtest.h>

#include <chrono>

namespace muster {
namespace {

using std::chrono::milliseconds;

TEST(StepCostTest, WhatWasSeenIsTold) {
  StepCost cost;
  cost.learn(1, milliseconds(5));
  cost.learn(8, milliseconds(20));
  EXPECT_DOUBLE_EQ(cost.seconds_of(1), 0.005);
  EXPECT_DOUBLE_EQ(cost.seconds_of(8), 0.020);
}

// A quarter of what is new: 0.004 + (0.008 - 0.004) / 4.
TEST(StepCostTest, ALaterStepCountsAQuarter) {
  StepCost cost;
  cost.learn(3, milliseconds(4));
  cost.learn(3, milliseconds(8));
  EXPECT_DOUBLE_EQ(cost.seconds_of(3), 0.005);
}

// By hand: between 4 and 8 tokens on the line; beyond 8 a quarter of 20 ms / 8 for each; below 4 a
// quarter of 12 ms / 4 less for each.
TEST(StepCostTest, WhatWasNotSeenIsReckonedFromItsNeighbours) {
  StepCost cost;
  EXPECT_DOUBLE_EQ(cost.seconds_of(1), 1) << "nothing is known";
  EXPECT_DOUBLE_EQ(cost.seconds_of(5), 2);
  cost.learn(4, milliseconds(12));
  cost.learn(8, milliseconds(20));
  EXPECT_DOUBLE_EQ(cost.seconds_of(5), 0.014);
  EXPECT_DOUBLE_EQ(cost.seconds_of(12), 0.020 + 4 * 0.020 / 8 / 4);
  EXPECT_DOUBLE_EQ(cost.seconds_of(2), 0.012 - 2 * 0.012 / 4 / 4);
}

TEST(StepCostTest, WhatWasNotSeenForLongIsForgotten) {
  StepCost cost;
  cost.learn(2, milliseconds(90));
  for (int i = 0; i < 255; ++i) cost.learn(1, milliseconds(8));
  EXPECT_DOUBLE_EQ(cost.seconds_of(2), 0.090);
  cost.learn(1, milliseconds(8));
  EXPECT_DOUBLE_EQ(cost.seconds_of(2), 0.010);
  cost.learn(2, milliseconds(9));
  EXPECT_DOUBLE_EQ(cost.seconds_of(2), 0.009) << "and what it was does not count";
}

TEST(StepCostTest, AStepOfVeryManyTokensIsNotKept) {
  StepCost cost;
  cost.learn(1, milliseconds(5));
  cost.learn(100'000, milliseconds(900));
  EXPECT_DOUBLE_EQ(cost.seconds_of(1), 0.005);
  EXPECT_LT(cost.seconds_of(300), cost.seconds_of(332)) << "a token more is never for nothing";
}

}  // namespace
}  // namespace muster

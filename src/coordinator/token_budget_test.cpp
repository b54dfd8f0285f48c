#include "coordinator/token_budget.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

void serve(TokenBudget& budget, int count, std::uint64_t tokens) {
  for (int i = 0; i < count; ++i) budget.on_served(tokens);
}

TEST(TokenBudgetTest, HalvesWhatDidNotFit) {
  TokenBudget budget(4096);
  budget.on_out_of_memory(4000);
  EXPECT_EQ(budget.now(), 2000U);
  budget.on_out_of_memory(1900);
  EXPECT_EQ(budget.now(), 950U);
}

TEST(TokenBudgetTest, ALateOutOfMemoryOfALargerBatchDoesNotRaiseIt) {
  TokenBudget budget(4096);
  budget.on_out_of_memory(1000);
  budget.on_out_of_memory(4000);
  EXPECT_EQ(budget.now(), 500U);
}

TEST(TokenBudgetTest, GrowsByAQuarterAfterTwentyFullBatches) {
  TokenBudget budget(4096);
  budget.on_out_of_memory(2000);
  serve(budget, 19, 1000);
  EXPECT_EQ(budget.now(), 1000U);
  EXPECT_TRUE(budget.on_served(1000));
  EXPECT_EQ(budget.now(), 1250U);
}

TEST(TokenBudgetTest, SmallBatchesSayNothingAboutTheRoom) {
  TokenBudget budget(4096);
  budget.on_out_of_memory(2000);
  serve(budget, 1000, 500);
  EXPECT_EQ(budget.now(), 1000U);
}

TEST(TokenBudgetTest, GrowsWhereABatchIsOneTextAndTwoWouldNotFit) {
  TokenBudget budget(4096);
  budget.on_out_of_memory(100);
  EXPECT_EQ(budget.now(), 50U);
  for (int i = 0; i < 20 * 21; ++i) budget.on_served(budget.now() / 31 * 31);  // texts of 31
  EXPECT_EQ(budget.now(), 4096U);
}

// Half of what did not fit says nothing about it.
TEST(TokenBudgetTest, GrowsNoFurtherThanWhatIsServedTells) {
  TokenBudget budget(16384);
  budget.on_out_of_memory(4000);
  for (int i = 0; i < 1000; ++i) budget.on_served(2100);  // the scheduler makes them no larger
  EXPECT_EQ(budget.now(), 4882U);
}

TEST(TokenBudgetTest, WhatDidNotFitAndFitsAgainLetsItGrowToTheFull) {
  TokenBudget budget(4096);
  budget.on_out_of_memory(300);
  EXPECT_EQ(budget.now(), 150U);
  serve(budget, 20 * 20, 300);  // never more: the scheduler bounds the time of a batch
  EXPECT_EQ(budget.now(), 4096U);
}

TEST(TokenBudgetTest, NeverGrowsAboveWhatWasAskedFor) {
  TokenBudget budget(1100);
  budget.on_out_of_memory(2000);
  serve(budget, 100, 1100);
  EXPECT_EQ(budget.now(), 1100U);
}

TEST(TokenBudgetTest, IsNeverBelowOneToken) {
  TokenBudget budget(4);
  budget.on_out_of_memory(1);
  EXPECT_EQ(budget.now(), 1U);
  serve(budget, 20, 1);
  EXPECT_EQ(budget.now(), 2U);
}

}  // namespace
}  // namespace muster

#include "engine/models/pass_budget.h"

#include <gtest/gtest.h>

namespace muster::engine {
namespace {

TEST(PassBudget, IsHalfOfThePassThatFoundNoMemory) {
  PassBudget budget(16384);
  budget.on_out_of_memory(5000);
  EXPECT_EQ(budget.now(), 2500);
  budget.on_out_of_memory(2500);
  EXPECT_EQ(budget.now(), 1250);
}

TEST(PassBudget, NeverFallsBelowOneToken) {
  PassBudget budget(16);
  for (int i = 0; i < 10; ++i) budget.on_out_of_memory(budget.now());
  EXPECT_EQ(budget.now(), 1);
}

TEST(PassBudget, DoublesAfterPassesThatFoundMemoryUpToItsMost) {
  PassBudget budget(1000);
  budget.on_out_of_memory(800);
  for (std::size_t i = 1; i < PassBudget::kPassesToGrow; ++i) budget.on_pass();
  EXPECT_EQ(budget.now(), 400);
  budget.on_pass();
  EXPECT_EQ(budget.now(), 800);
  for (std::size_t i = 0; i < PassBudget::kPassesToGrow; ++i) budget.on_pass();
  EXPECT_EQ(budget.now(), 1000);
}

TEST(PassBudget, APassWithoutMemoryBeginsTheCountAgain) {
  PassBudget budget(1000);
  budget.on_out_of_memory(1000);
  for (std::size_t i = 1; i < PassBudget::kPassesToGrow; ++i) budget.on_pass();
  budget.on_out_of_memory(500);
  budget.on_pass();
  EXPECT_EQ(budget.now(), 250);
}

}  // namespace
}  // namespace muster::engine

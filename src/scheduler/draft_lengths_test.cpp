#include "scheduler/draft_lengths.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace muster {
namespace {

using Lengths = std::vector<std::size_t>;
using Offers = std::vector<DraftOffer>;

// Steps of 1 to 40 tokens: `fixed` ms, and `each` ms a token.
StepCost cost_of(int fixed, int each) {
  StepCost cost;
  for (int tokens = 1; tokens <= 40; ++tokens) {
    cost.learn(static_cast<std::uint32_t>(tokens),
               std::chrono::milliseconds(fixed + each * tokens));
  }
  return cost;
}

// 10 + 1 ms a token. By hand, tokens a ms: 1 / 11 = 0.0909; of a half 1.5 / 12 = 0.125,
// 1.75 / 13 = 0.1346, 1.875 / 14 = 0.1339: two are best.
TEST(DraftLengthsTest, ADraftEndsWhereATokenMoreCostsMoreThanItBrings) {
  EXPECT_EQ(draft_lengths(Offers{{8, 0.5}}, 1, 32, cost_of(10, 1)), Lengths{2});
  EXPECT_EQ(draft_lengths(Offers{{8, 1.0}}, 1, 32, cost_of(10, 1)), Lengths{8});
  EXPECT_EQ(draft_lengths(Offers{{8, 0.05}}, 1, 32, cost_of(10, 1)), Lengths{0});
}

TEST(DraftLengthsTest, NothingPaysWhereAStepIsAllArithmetic) {
  EXPECT_EQ(draft_lengths(Offers{{8, 0.9}}, 1, 32, cost_of(0, 2)), Lengths{0});
  EXPECT_EQ(draft_lengths(Offers{{8, 1.0}}, 1, 32, cost_of(0, 2)), Lengths{0}) << "nor is it worse";
}

TEST(DraftLengthsTest, TheLikeliestGoFirst) {
  EXPECT_EQ(draft_lengths(Offers{{4, 0.6}, {4, 0.9}, {0, 1.0}}, 3, 4, cost_of(100, 1)),
            (Lengths{0, 4, 0}));  // 0.9, 0.81, 0.729 and 0.6561 are before 0.6
}

// The ninth token begins another pass over the weights; those behind it cost nothing.
TEST(DraftLengthsTest, AJumpOfTheCostIsTakenWhole) {
  StepCost cost;
  for (std::uint32_t tokens = 1; tokens <= 16; ++tokens) {
    cost.learn(tokens, std::chrono::milliseconds(tokens <= 8 ? 10 : 18));
  }
  EXPECT_EQ(draft_lengths(Offers{{4, 0.9}}, 8, 32, cost), Lengths{0})
      << "11.1 for 18 ms, not 8 for 10";
  EXPECT_EQ(draft_lengths(Offers{{4, 0.9}}, 6, 32, cost), Lengths{2}) << "up to the jump";
  EXPECT_EQ(draft_lengths(Offers(8, {1, 0.99}), 8, 32, cost), Lengths(8, 1)) << "15.9 for 18 ms";
}

TEST(DraftLengthsTest, NobodyHasADraft) {
  EXPECT_EQ(draft_lengths({}, 4, 32, cost_of(10, 1)), Lengths{});
  EXPECT_EQ(draft_lengths(Offers{{0, 0.9}}, 1, 32, cost_of(10, 1)), Lengths{0});
}

}  // namespace
}  // namespace muster

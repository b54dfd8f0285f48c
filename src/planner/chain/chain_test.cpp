#include "planner/chain/chain.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "planner/chain/chain_oracle.h"

namespace muster {
namespace {

using chain_oracle::Aim;

constexpr int kInstances = 2'500 / 2;  // of each question; ./accept plan.3 takes more

struct Question {
  const char* name;
  Aim aim;
  bool is_ordered;
};

constexpr Question kP1{"P1", Aim::Slowest, true};
constexpr Question kP2{"P2", Aim::Slowest, false};
constexpr Question kP3{"P3", Aim::Total, true};
constexpr Question kP4{"P4", Aim::Total, false};

std::optional<ChainPlacement> ask(const Question& question,
                                  const chain_oracle::Instance& instance) {
  const auto& [problem, counts, order] = instance;
  if (question.aim == Aim::Slowest) {
    return question.is_ordered ? min_slowest_in_order(problem, order)
                               : min_slowest_any_order(problem, counts);
  }
  return question.is_ordered ? min_total_in_order(problem, order)
                             : min_total_any_order(problem, counts);
}

// Against everything there is: the same answer, or none where nothing fits.
void compare_with_brute_force(const Question& question) {
  constexpr std::uint64_t kSeed = 20;
  std::mt19937_64 random(kSeed);
  int none = 0;
  for (int i = 0; i < kInstances; ++i) {
    SCOPED_TRACE(std::string(question.name) + " seed 20 instance " + std::to_string(i));
    const auto instance = chain_oracle::random_instance(random, {});
    const auto& problem = instance.problem;
    const auto wanted = question.is_ordered
                            ? chain_oracle::best_in_order(problem, instance.order, question.aim)
                            : chain_oracle::best_any_order(problem, instance.counts, question.aim);
    const auto found = ask(question, instance);
    ASSERT_EQ(found.has_value(), wanted.has_value());
    if (!found) {
      ++none;
      continue;
    }
    auto left = instance.counts;
    std::int64_t last = -1;
    ASSERT_EQ(chain_oracle::fault_of(problem, *found,
                                     [&](std::size_t stage) {
                                       const auto device = found->stages[stage].device;
                                       return question.is_ordered ? instance.order[device] : device;
                                     }),
              "");
    for (const auto& stage : found->stages) {
      if (question.is_ordered) {
        ASSERT_GT(std::int64_t{stage.device}, last) << "the order of the devices";
        last = stage.device;
      } else {
        ASSERT_GT(left[stage.device], 0U) << "more devices of a class than there are";
        --left[stage.device];
      }
    }
    const auto value = question.aim == Aim::Slowest ? found->slowest_seconds : found->total_seconds;
    ASSERT_NEAR(value, *wanted, 1e-9 * *wanted);
    ASSERT_NEAR(found->bound_seconds, *wanted, 1e-9 * *wanted);
  }
  EXPECT_GT(none, kInstances / 20) << "the generator makes too few instances that fit nowhere";
  EXPECT_LT(none, kInstances / 2);
}

TEST(MinSlowestInOrder, EqualsBruteForce) { compare_with_brute_force(kP1); }
TEST(MinSlowestAnyOrder, EqualsBruteForce) { compare_with_brute_force(kP2); }
TEST(MinTotalInOrder, EqualsBruteForce) { compare_with_brute_force(kP3); }
TEST(MinTotalAnyOrder, EqualsBruteForce) { compare_with_brute_force(kP4); }

TEST(MinSlowestOfEqual, EqualsTheSameQuestionForEachNumber) {
  std::mt19937_64 random(21);
  const std::vector<std::uint32_t> device_counts{5, 1, 3, 2, 8, 3};
  for (int i = 0; i < 500; ++i) {
    SCOPED_TRACE(i);
    const auto instance = chain_oracle::random_instance(random, {});
    const auto found = min_slowest_of_equal(instance.problem, device_counts);
    ASSERT_EQ(found.size(), device_counts.size());
    for (std::size_t n = 0; n < found.size(); ++n) {
      const auto wanted = chain_oracle::best_in_order(
          instance.problem, std::vector<std::uint32_t>(device_counts[n], 0), Aim::Slowest);
      ASSERT_EQ(found[n].has_value(), wanted.has_value());
      ASSERT_NEAR(found[n].value_or(0.0), wanted.value_or(0.0), 1e-9 * wanted.value_or(0.0));
    }
  }
}

// 4 + 4 + 2 seconds on two devices: cut after the first unit 4 | 6, after the second 8 | 2.
TEST(MinSlowestInOrder, CutsWhereTheSlowerPartIsLeast) {
  const ChainProblem problem{.bytes = {1, 1, 1}, .seconds = {{4, 4, 2}}, .capacity = {3}};
  const auto found = min_slowest_in_order(problem, std::vector<std::uint32_t>{0, 0});
  ASSERT_TRUE(found);
  ASSERT_EQ(found->stages.size(), 2U);
  EXPECT_EQ(found->stages[0].end, 1U);
  EXPECT_DOUBLE_EQ(found->slowest_seconds, 6.0);
  EXPECT_DOUBLE_EQ(found->total_seconds, 10.0);
  EXPECT_DOUBLE_EQ(found->bound_seconds, 6.0);
}

TEST(MinSlowestInOrder, LeavesOutADeviceThatHoldsNothing) {
  const ChainProblem problem{.bytes = {5, 5}, .seconds = {{1, 1}, {1, 1}}, .capacity = {4, 5}};
  const auto found = min_slowest_in_order(problem, std::vector<std::uint32_t>{0, 1, 0, 1});
  ASSERT_TRUE(found);
  ASSERT_EQ(found->stages.size(), 2U);
  EXPECT_EQ(found->stages[0].device, 1U);
  EXPECT_EQ(found->stages[1].device, 3U);
}

// The peak is a maximum over the stage: 1 + 1 + max(5, 5) = 7 fits where a sum of 12 would not.
TEST(MinSlowestInOrder, CountsThePeakOnceAStage) {
  ChainProblem problem{.bytes = {1, 1}, .peak = {5, 5}, .seconds = {{1, 1}}, .capacity = {7}};
  const std::vector<std::uint32_t> one{0};
  EXPECT_TRUE(min_slowest_in_order(problem, one));
  problem.capacity = {6};
  EXPECT_FALSE(min_slowest_in_order(problem, one));
}

// A tied head costs its table again on another device. On the first device alone nothing is copied,
// so a later device with room for the whole is right although an earlier one could take a part.
TEST(MinSlowestInOrder, TakesTheWholeChainOnOneDeviceWhenTheTailCannotBeCopied) {
  const ChainProblem problem{
      .bytes = {4, 1}, .seconds = {{1, 1}, {1, 1}}, .capacity = {4, 5}, .tail_extra_bytes = 5};
  const auto found = min_slowest_in_order(problem, std::vector<std::uint32_t>{0, 1});
  ASSERT_TRUE(found);
  ASSERT_EQ(found->stages.size(), 1U);
  EXPECT_EQ(found->stages[0].device, 1U);
  EXPECT_EQ(found->stages[0].begin, 0U);
}

// The last stage pays no cut: 3 + 1 | 4, not 4 + 1 | 3.
TEST(MinSlowestInOrder, CountsACutOnTheStageThatHandsOver) {
  const ChainProblem problem{
      .bytes = {0, 0, 0}, .seconds = {{3, 1, 3}}, .capacity = {0}, .cut_seconds = 1.0};
  const auto found = min_slowest_in_order(problem, std::vector<std::uint32_t>{0, 0});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->stages[0].end, 1U);
  EXPECT_DOUBLE_EQ(found->slowest_seconds, 4.0);
}

// Cuts that differ: after the first unit 10, after the second 0. The even division 1 | 2 loses.
TEST(MinSlowestInOrder, AvoidsADearCut) {
  const ChainProblem problem{
      .bytes = {0, 0, 0}, .seconds = {{2, 1, 1}}, .capacity = {0}, .cut_seconds_after = {10, 0, 0}};
  const auto found = min_slowest_in_order(problem, std::vector<std::uint32_t>{0, 0});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->stages[0].end, 2U);
  EXPECT_DOUBLE_EQ(found->slowest_seconds, 3.0);
}

TEST(MinSlowestAnyOrder, UsesNoMoreDevicesThanTheBoundNeeds) {
  // One unit of 6 and three of 1: the slowest stage is 6 whatever is done, two devices reach it.
  const ChainProblem problem{.bytes = {0, 0, 0, 0}, .seconds = {{6, 1, 1, 1}}, .capacity = {0}};
  const auto found = min_slowest_any_order(problem, std::vector<std::uint32_t>{4});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->stages.size(), 2U);
}

TEST(Chain, OfNoUnitsNeedsNoStage) {
  const ChainProblem problem{.seconds = {{}}, .capacity = {0}};
  const auto found = min_slowest_in_order(problem, std::vector<std::uint32_t>{});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->stages.empty());
  EXPECT_TRUE(min_slowest_any_order(problem, std::vector<std::uint32_t>{0}));
}

}  // namespace
}  // namespace muster

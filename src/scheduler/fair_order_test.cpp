#include "scheduler/fair_order.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

namespace muster {
namespace {

constexpr FlowId kA = 1;
constexpr FlowId kB = 2;

TEST(FairOrder, AloneAFlowKeepsTheOrderOfItsTexts) {
  FairOrder order;
  EXPECT_EQ(order.add(kA, 100), 0U);
  EXPECT_EQ(order.add(kA, 50), 100U);
  EXPECT_EQ(order.add(kA, 10), 150U);
}

// A has 4 texts of 100 tokens, ranks 0, 100, 200, 300. The first goes; B comes with 2 texts of 100:
// ranks 0 and 100. So the order is A0 | B0, A100, B100, A200, A300: B's two are done after 4 texts
// and not after 6.
TEST(FairOrder, ALaterFlowDoesNotWaitBehindAllOfTheEarlierOne) {
  FairOrder order;
  for (const std::uint64_t rank : {0U, 100U, 200U, 300U}) EXPECT_EQ(order.add(kA, 100), rank);
  order.on_given(kA, 100, 0);
  EXPECT_EQ(order.add(kB, 100), 0U);
  EXPECT_EQ(order.add(kB, 100), 100U);
  order.on_given(kB, 100, 0);
  order.on_given(kA, 100, 100);
  // The virtual time is 100, where its last text ended: no credit for having been away.
  EXPECT_EQ(order.add(kB, 100), 200U);
}

TEST(FairOrder, WhoComesLateHasNoCreditFromBefore) {
  FairOrder order;
  for (int i = 0; i < 10; ++i) order.on_given(kA, 100, order.add(kA, 100));
  const auto rank = order.add(kA, 100);
  EXPECT_EQ(order.add(kB, 100), rank);
}

TEST(FairOrder, AFlowIsNotChargedForWhatItTakesBack) {
  FairOrder order;
  EXPECT_EQ(order.add(kA, 100), 0U);
  EXPECT_EQ(order.add(kB, 500), 0U);
  order.on_removed(kB, 500, 0);
  EXPECT_EQ(order.add(kB, 10), 0U);
}

// From the back all of it is taken back; what others of the flow stand behind keeps its place, or
// the next text would have the turn of one that waits already.
TEST(FairOrder, OnlyTheEndOfAFlowIsRolledBack) {
  FairOrder order;
  for (const std::uint64_t rank : {0U, 100U, 200U, 300U}) EXPECT_EQ(order.add(kA, 100), rank);
  order.on_removed(kA, 100, 0);
  EXPECT_EQ(order.add(kA, 100), 400U);
  order.on_removed(kA, 100, 400);
  order.on_removed(kA, 100, 300);
  EXPECT_EQ(order.add(kA, 100), 300U);
}

// A has 1000 tokens waiting and B 50: of A's, 80 go before the last of B's 80 = 50 + 30.
TEST(FairOrder, CountsOfTheOthersWhatGoesBefore) {
  FairOrder order;
  order.add(kA, 1000);
  order.add(kB, 50);
  EXPECT_EQ(order.tokens_ahead(kB, 30), 50U + 80U);
  EXPECT_EQ(order.tokens_ahead(kA, 30), 1000U + 50U);
  EXPECT_EQ(order.tokens_ahead(3, 30), 30U + 30U);
}

// Three flows that always have texts waiting, of 10, 30 and 100 tokens: after any time each has had
// as many tokens as any other, to within two texts of the largest.
TEST(FairOrder, FlowsWithTextsOfAnySizeGetTheSameTokens) {
  FairOrder order;
  const std::map<FlowId, std::uint64_t> sizes{{1, 10}, {2, 30}, {3, 100}};
  std::map<FlowId, std::uint64_t> next;
  std::map<FlowId, std::uint64_t> had;
  for (const auto& [flow, size] : sizes) next[flow] = order.add(flow, size);
  for (int step = 0; step < 5000; ++step) {
    FlowId first = 1;
    for (const auto& [flow, rank] : next) first = rank < next[first] ? flow : first;
    const auto rank = next[first];
    next[first] = order.add(first, sizes.at(first));  // always another one behind it
    order.on_given(first, sizes.at(first), rank);
    had[first] += sizes.at(first);
    for (const auto& [flow, tokens] : had) {
      ASSERT_LE(tokens, had[1] + 200) << flow << " at " << step;
      ASSERT_LE(had[1], tokens + 200) << flow << " at " << step;
    }
  }
}

}  // namespace
}  // namespace muster

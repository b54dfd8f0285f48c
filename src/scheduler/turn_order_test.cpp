#include "scheduler/turn_order.h"

#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <vector>

namespace muster {
namespace {

std::vector<ItemTurn> drained(TurnOrder& order) {
  std::vector<ItemTurn> turns;
  for (; !order.empty(); order.remove_first()) turns.push_back(order.first());
  return turns;
}

TEST(TurnOrder, RankGoesBeforeAgeHoweverTheyCame) {
  TurnOrder order;
  for (const ItemTurn& turn : std::vector<ItemTurn>{{5, 2}, {5, 7}, {9, 3}, {5, 4}, {1, 8}}) {
    order.add(turn);
  }
  EXPECT_EQ(order.size(), 5U);
  EXPECT_EQ(drained(order), (std::vector<ItemTurn>{{1, 8}, {5, 2}, {5, 4}, {5, 7}, {9, 3}}));
  EXPECT_EQ(order.size(), 0U);
}

TEST(TurnOrder, WhatIsRemovedIsGone) {
  TurnOrder order;
  for (const ItemTurn& turn : std::vector<ItemTurn>{{1, 1}, {2, 2}, {3, 3}, {2, 1}}) {
    order.add(turn);
  }
  EXPECT_TRUE(order.remove({2, 2}));
  EXPECT_TRUE(order.remove({2, 1})) << "which came behind {3, 3}";
  EXPECT_FALSE(order.remove({2, 2}));
  EXPECT_FALSE(order.remove({3, 2}));
  EXPECT_FALSE(order.remove({4, 4}));
  std::set<ItemTurn> seen;
  order.visit([&](const ItemTurn& turn) { seen.insert(turn); });
  EXPECT_EQ(seen, (std::set<ItemTurn>{{1, 1}, {3, 3}}));
  EXPECT_EQ(drained(order), (std::vector<ItemTurn>{{1, 1}, {3, 3}}));
}

// Three flows of their own ranks, texts that leave from the front, some that come back and some
// that are cancelled: at each step the first one is that of one ordered set.
TEST(TurnOrder, IsTheOrderOfASet) {
  for (const std::uint32_t seed : {1U, 2U, 3U}) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    TurnOrder order;
    std::set<ItemTurn> expected;
    std::vector<ItemTurn> given;
    std::vector<std::uint64_t> ranks(3);
    ItemKey next_key = 0;
    const auto add = [&](const ItemTurn& turn) {
      order.add(turn);
      expected.insert(turn);
    };
    for (int step = 0; step < 20'000; ++step) {
      const auto what = random() % 16;
      if (what < 7 || expected.empty()) {
        const auto flow = what < 6 ? 0U : random() % 3;
        add({ranks[flow] += random() % 3, next_key++});
      } else if (what < 13) {
        ASSERT_EQ(order.first(), *expected.begin());
        given.push_back(order.first());
        order.remove_first();
        expected.erase(expected.begin());
      } else if (what == 13 && !given.empty()) {
        add(given.back());
        given.pop_back();
      } else {
        const auto at = static_cast<std::ptrdiff_t>(random() % expected.size());
        const auto turn = *std::next(expected.begin(), at);
        ASSERT_TRUE(order.remove(turn));
        ASSERT_FALSE(order.remove(turn));
        expected.erase(turn);
      }
      ASSERT_EQ(order.size(), expected.size());
      ASSERT_EQ(order.empty(), expected.empty());
    }
    EXPECT_EQ(drained(order), std::vector<ItemTurn>(expected.begin(), expected.end()));
  }
}

}  // namespace
}  // namespace muster

#include "serving/unsent_texts.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster {
namespace {

constexpr FlowId kA = 1;
constexpr FlowId kB = 2;

/// The calls in the order of the next texts of so many bytes each.
std::vector<CallId> take(UnsentTexts& unsent, std::size_t count, std::uint64_t bytes) {
  std::vector<CallId> order;
  for (std::size_t i = 0; i < count; ++i) {
    order.push_back(*unsent.first());
    unsent.charge(order.back() < 10 ? kA : kB, bytes);
  }
  return order;
}

// A's calls have numbers below 10.
TEST(UnsentTexts, ASmallCallOfAnotherKeyDoesNotWaitForALargeOne) {
  UnsentTexts unsent;
  unsent.add(1, kA, 1000, 20'000);
  unsent.add(2, kA, 1000, 20'000);
  EXPECT_EQ(take(unsent, 3, 100), (std::vector<CallId>{1, 1, 1}));
  unsent.add(11, kB, 2, 40);
  EXPECT_EQ(take(unsent, 4, 100), (std::vector<CallId>{11, 1, 11, 1}));
  EXPECT_EQ(unsent.first(), 11U);
  unsent.drop_first();
  EXPECT_EQ(take(unsent, 2, 100), (std::vector<CallId>{1, 1}));
}

// B has gone and comes again: what it had counts, or A would wait for as long as B comes.
TEST(UnsentTexts, AKeyThatComesAgainAndAgainHoldsNobodyUp) {
  UnsentTexts unsent;
  unsent.add(1, kA, 1000, 20'000);
  std::vector<CallId> order;
  for (CallId call = 11; call < 15; ++call) {
    unsent.add(call, kB, 1, 20);
    do {
      if (unsent.first() < call && unsent.first() > 10U) unsent.drop_first();  // has been sent
      order.push_back(take(unsent, 1, 100).front());
    } while (order.back() != call);
    unsent.subtract(kB, 1, 20);
  }
  EXPECT_EQ(order, (std::vector<CallId>{1, 11, 1, 12, 1, 13, 1, 14}));
}

TEST(UnsentTexts, WhatWasAsideGoesBeforeTheOtherCallsOfItsKey) {
  UnsentTexts unsent;
  unsent.add(1, kA, 2, 20);
  unsent.add(2, kA, 1, 10);
  unsent.charge(kA, 20'000);
  unsent.drop_first();
  EXPECT_EQ(unsent.first(), 2U);
  unsent.add_first(1, kA);
  EXPECT_EQ(unsent.first(), 1U);
}

// As FairOrder.CountsOfTheOthersWhatGoesBefore.
TEST(UnsentTexts, CountsOfTheOthersWhatGoesBefore) {
  UnsentTexts unsent;
  unsent.add(1, kA, 10, 1000);
  unsent.add(11, kB, 5, 50);
  EXPECT_EQ(unsent.tokens_ahead(kB, 30), 50U + 80U);
  EXPECT_EQ(unsent.tokens_ahead(kA, 30), 1000U + 50U);
  EXPECT_EQ(unsent.tokens_ahead(3, 30), 30U + 30U);
  EXPECT_EQ(unsent.token_count(), 1050U);
  EXPECT_EQ(unsent.text_count(), 15U);
  unsent.subtract(kA, 10, 1000);
  EXPECT_EQ(unsent.tokens_ahead(kB, 30), 50U);
}

}  // namespace
}  // namespace muster

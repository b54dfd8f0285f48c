#include "scheduler/prompt_lookup.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace muster {
namespace {

using Ids = std::vector<std::uint32_t>;

TEST(PromptLookupTest, WhatCameBehindTheSameThreeTokensIsGuessed) {
  PromptLookup lookup;
  EXPECT_EQ(lookup.draft(Ids{1, 2, 3, 4, 5, 6, 1, 2, 3}, 2), (Ids{4, 5}));
  EXPECT_TRUE(PromptLookup().draft(Ids{1, 2, 3, 4, 5, 6, 9, 2, 3}, 2).empty());
}

TEST(PromptLookupTest, TheLatestPlaceCounts) {
  PromptLookup lookup;
  EXPECT_EQ(lookup.draft(Ids{1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3}, 1), Ids{5});
}

TEST(PromptLookupTest, ACycleGoesOn) {
  PromptLookup lookup;
  EXPECT_EQ(lookup.draft(Ids{8, 1, 2, 1, 2, 1, 2}, 5), (Ids{1, 2, 1, 2, 1}));
  EXPECT_EQ(PromptLookup().draft(Ids{7, 7, 7, 7}, 3), (Ids{7, 7, 7}));
}

TEST(PromptLookupTest, FewerIdsThanItLooksForHaveNoDraft) {
  PromptLookup lookup;
  EXPECT_TRUE(lookup.draft({}, 4).empty());
  EXPECT_TRUE(lookup.draft(Ids{7, 7, 7}, 4).empty());
  EXPECT_TRUE(lookup.draft(Ids{7, 7, 7, 7}, 0).empty());
}

// It begins at a half. A hit moves it by an eighth of the way to 1, a miss to 0: by hand,
// 0.5 + 0.5 / 8 = 0.5625, and (0.5625 x 7 / 8) = 0.4921875.
TEST(PromptLookupTest, TheShareOfHitsIsKeptForGuessesThatNobodyComputed) {
  PromptLookup lookup;
  Ids ids{1, 2, 3, 4, 5, 6, 1, 2, 3};
  lookup.draft(ids, 0);
  ids.push_back(4);
  lookup.draft(ids, 0);
  EXPECT_DOUBLE_EQ(lookup.hit_rate(), 0.5625);
  ids.push_back(9);
  lookup.draft(ids, 0);
  EXPECT_DOUBLE_EQ(lookup.hit_rate(), 0.4921875);
  lookup.draft(ids, 0);
  EXPECT_DOUBLE_EQ(lookup.hit_rate(), 0.4921875) << "nothing was guessed, and nothing came";
}

// Of several that came at once those behind the first miss were never guessed.
TEST(PromptLookupTest, AGuessIsOverWithItsFirstMiss) {
  PromptLookup lookup;
  Ids ids{1, 2, 3, 4, 5, 6, 1, 2, 3};
  lookup.draft(ids, 3);
  ids.insert(ids.end(), {9, 5, 6});
  lookup.draft(ids, 3);
  EXPECT_DOUBLE_EQ(lookup.hit_rate(), 0.5 * 7 / 8);
}

// The table grows, and what it held before is found all the same.
TEST(PromptLookupTest, TheBeginningOfALongTextIsFound) {
  std::mt19937 random(7);
  PromptLookup lookup;
  Ids ids{1, 2, 3, 4, 5};
  while (ids.size() < 5000) {
    ids.push_back(10 + static_cast<std::uint32_t>(random() % 1'000'000));
    lookup.draft(ids, 1);
  }
  // A later three may have its bucket, but hardly those of both.
  auto first = ids;
  first.insert(first.end(), {1, 2, 3});
  auto second = ids;
  second.insert(second.end(), {2, 3, 4});
  auto other = lookup;
  EXPECT_TRUE(lookup.draft(first, 1) == Ids{4} || other.draft(second, 1) == Ids{5});
}

}  // namespace
}  // namespace muster

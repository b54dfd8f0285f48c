#include "coordinator/text_ids.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TextIds::List list_of(const TextIds& ids) {
  EXPECT_EQ(ids.size(), ids.values().size());
  return {ids.values().begin(), ids.values().end()};
}

TEST(TextIds, AreAListOfTheirOwnOrAPartOfAnother) {
  EXPECT_EQ(list_of({}), TextIds::List());
  EXPECT_EQ(list_of(TextIds::List{5, 6}), (TextIds::List{5, 6}));
  auto shared = std::make_shared<TextIds::List>(TextIds::List{1, 2});
  const TextIds first(shared, {.begin = 0, .size = 2});
  shared->insert(shared->end(), 1000, 3);  // it may move while others come behind them
  const TextIds second(shared, {.begin = 2, .size = 3});
  const TextIds none(shared, {.begin = 5, .size = 0});
  EXPECT_EQ(list_of(first), (TextIds::List{1, 2}));
  EXPECT_EQ(list_of(second), (TextIds::List{3, 3, 3}));
  EXPECT_EQ(list_of(none), TextIds::List());
}

TEST(TextIds, WhatIsSharedLivesAsLongAsOneOfItsTexts) {
  auto shared = std::make_shared<TextIds::List>(TextIds::List{1, 2});
  const std::weak_ptr<TextIds::List> watched = shared;
  auto first = std::make_unique<TextIds>(shared, TextIds::Part{.begin = 0, .size = 1});
  auto second = std::make_unique<TextIds>(std::move(shared), TextIds::Part{.begin = 1, .size = 1});
  first.reset();
  EXPECT_FALSE(watched.expired());
  EXPECT_EQ(list_of(*second), (TextIds::List{2}));
  second.reset();
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace muster

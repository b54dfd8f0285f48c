#include "scheduler/key_table.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <memory>
#include <random>

namespace muster {
namespace {

std::map<ItemKey, int> content_of(const KeyTable<int>& table) {
  std::map<ItemKey, int> content;
  table.visit([&](ItemKey key, int value) { content.emplace(key, value); });
  return content;
}

TEST(KeyTable, FindsWhatWasAddedUntilItIsErased) {
  KeyTable<int> table;
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.find(7), nullptr);
  EXPECT_FALSE(table.erase(7));
  table.add(7, 70);
  table.add(0, 1);
  EXPECT_EQ(table.at(7), 70);
  EXPECT_TRUE(table.contains(0));
  table.at(0) = 2;
  EXPECT_EQ(content_of(table), (std::map<ItemKey, int>{{0, 2}, {7, 70}}));
  EXPECT_TRUE(table.erase(7));
  EXPECT_FALSE(table.erase(7));
  EXPECT_FALSE(table.contains(7));
  EXPECT_EQ(table.size(), 1U);
}

// Keys in rows, as they come, some of which stay for long, and keys from anywhere.
TEST(KeyTable, IsAMapWhateverComesAndGoes) {
  std::random_device device;
  const auto seed = device();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  KeyTable<int> table;
  std::map<ItemKey, int> expected;
  ItemKey next = 0;
  for (int step = 0; step < 60'000; ++step) {
    const bool is_filling = step / 10'000 % 2 == 0;
    if (random() % 10 < (is_filling ? 7U : 3U)) {
      const ItemKey key = random() % 50 == 0 ? random() : next++;
      if (!expected.emplace(key, step).second) continue;
      EXPECT_EQ(table.add(key, step), step);
    } else if (!expected.empty()) {
      // Most often one of the oldest.
      auto gone = expected.begin();
      if (random() % 4 == 0) gone = expected.lower_bound(random() % (next + 1));
      if (gone == expected.end()) gone = std::prev(gone);
      ASSERT_TRUE(table.erase(gone->first));
      expected.erase(gone);
    }
    ASSERT_EQ(table.size(), expected.size());
    if (step % 5'000 == 4'999) {
      ASSERT_EQ(content_of(table), expected);
      for (const auto& [key, value] : expected) ASSERT_EQ(table.at(key), value);
    }
  }
}

TEST(KeyTable, AValueStaysWhereItIsAndGivesBackWhatItHeld) {
  KeyTable<std::shared_ptr<int>> table;
  const auto held = std::make_shared<int>(5);
  const auto* place = &table.add(1, held);
  for (ItemKey key = 2; key < 10'000; ++key) table.add(key, nullptr);
  for (ItemKey key = 3; key < 10'000; key += 2) table.erase(key);
  EXPECT_EQ(table.find(1), place);
  EXPECT_EQ(held.use_count(), 2);
  EXPECT_TRUE(table.erase(1));
  EXPECT_EQ(held.use_count(), 1);
  for (ItemKey key = 2; key < 10'000; key += 2) EXPECT_TRUE(table.erase(key));
  EXPECT_TRUE(table.empty()) << "and as a new one";
  table.add(4, held);
  EXPECT_EQ(table.at(4), held);
}

}  // namespace
}  // namespace muster

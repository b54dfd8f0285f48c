#include "scheduler/batch_queue.h"

#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <set>

namespace muster {
namespace {

std::vector<ItemKey> keys_of(const WorkBatch& batch) {
  std::vector<ItemKey> keys;
  for (const auto& item : batch.items) keys.push_back(item.key);
  return keys;
}

using Keys = std::vector<ItemKey>;

TEST(BatchQueue, PutsEqualLengthsTogetherStartingWithTheOldest) {
  BatchQueue queue;
  queue.add({1, 100});
  queue.add({2, 200});
  queue.add({3, 100});
  queue.add({4, 200});
  const auto first = queue.cut(0, {.token_budget = 200});
  ASSERT_TRUE(first);
  EXPECT_EQ(keys_of(*first), (Keys{1, 3}));
  EXPECT_EQ(first->token_count, 200U);
  EXPECT_EQ(keys_of(*queue.cut(0, {.token_budget = 400})), (Keys{2, 4}));
  EXPECT_FALSE(queue.cut(0, {.token_budget = 400}));
}

TEST(BatchQueue, FillsUpWithTheNearestLengths) {
  BatchQueue queue;
  queue.add({1, 100});
  queue.add({2, 300});
  queue.add({3, 120});
  queue.add({4, 90});
  // 100 + 90 (distance 10) + 120 (distance 20) = 310; 300 more would pass 400.
  EXPECT_EQ(keys_of(*queue.cut(0, {.token_budget = 400})), (Keys{1, 4, 3}));
}

TEST(BatchQueue, TheLowestRankGoesFirstAndThenTheOldest) {
  BatchQueue queue;
  queue.add({1, 100, 300});
  queue.add({2, 100, 0});
  queue.add({3, 200, 100});
  queue.add({4, 100, 0});
  EXPECT_EQ(keys_of(*queue.cut(0, {.token_budget = 200})), (Keys{2, 4}));
  EXPECT_EQ(keys_of(*queue.cut(0, {.token_budget = 200})), (Keys{3}));
  EXPECT_TRUE(queue.remove({1, 100, 300}));
  EXPECT_EQ(queue.item_count(), 0U);
}

// The call of texts 1 and 2 came first. Without a window text 2 waits until no text of 100 tokens
// is left; with one of 200 tokens text 5 (rank 300) waits for it.
TEST(BatchQueue, ACallsTextsAreNotSpreadBehindLaterOnesThatFitBetter) {
  BatchQueue queue;
  queue.add({1, 100, 0});
  queue.add({2, 300, 100});
  queue.add({3, 100, 0});
  queue.add({4, 100, 200});
  queue.add({5, 100, 300});
  queue.add({6, 100, 400});
  const CutLimits limits{.token_budget = 600, .rank_window = 200};
  EXPECT_EQ(keys_of(*queue.cut(0, limits)), (Keys{1, 3, 4, 2}));
  EXPECT_EQ(keys_of(*queue.cut(0, limits)), (Keys{5, 6}));
}

TEST(BatchQueue, SendsATextAboveTheBudgetAlone) {
  BatchQueue queue;
  queue.add({1, 500});
  queue.add({2, 10});
  EXPECT_EQ(keys_of(*queue.cut(0, {.token_budget = 256})), (Keys{1}));
}

TEST(BatchQueue, SpreadsTheLastTextsOverAllSlots) {
  BatchQueue queue;
  for (ItemKey key = 0; key < 8; ++key) queue.add({key, 100});
  // 800 tokens over 4 slots: 200 tokens each, though the budget is larger.
  EXPECT_EQ(queue.cut(0, {.token_budget = 4096, .slot_count = 4})->items.size(), 2U);
}

TEST(BatchQueue, ASlotTakesWhatIsWorthwhileThoughItsShareIsLess) {
  BatchQueue queue;
  for (ItemKey key = 0; key < 8; ++key) queue.add({key, 100});
  const CutLimits limits{.token_budget = 4096, .slot_count = 4, .worthwhile_tokens = 300};
  EXPECT_EQ(queue.cut(0, limits)->token_count, 300U);  // where 800 / 4 are 200
  EXPECT_EQ(queue.cut(0, {.token_budget = 100, .slot_count = 1})->token_count, 100U);
  EXPECT_EQ(queue.cut(0, {.token_budget = 4096, .slot_count = 1})->token_count, 400U);
}

TEST(BatchQueue, ALostBatchWaitsAgainInItsOldPlace) {
  BatchQueue queue;
  for (ItemKey key = 1; key <= 4; ++key) queue.add({key, 100});
  auto lost = queue.cut(0, {.token_budget = 200});
  EXPECT_EQ(queue.item_count(), 2U);
  queue.give_back(std::move(*lost));
  EXPECT_EQ(queue.item_count(), 4U);
  EXPECT_EQ(queue.token_count(), 400U);
  EXPECT_EQ(keys_of(*queue.cut(1, {.token_budget = 400})), (Keys{1, 2, 3, 4}));
}

TEST(BatchQueue, TextsOfAStruckBatchGoToAnotherDeviceOneByOne) {
  BatchQueue queue;
  for (ItemKey key = 1; key <= 4; ++key) queue.add({key, 100});
  auto struck = queue.cut(0, {.token_budget = 200});
  EXPECT_FALSE(queue.strike(std::move(*struck), 0));
  EXPECT_EQ(queue.item_count(), 4U);
  EXPECT_EQ(queue.token_count(), 400U);
  EXPECT_EQ(queue.first(0, {})->key, 3U);
  EXPECT_EQ(queue.first(1, {})->key, 1U);
  EXPECT_EQ(keys_of(*queue.cut(0, {.token_budget = 4096})), (Keys{3, 4}));  // not its killer again
  EXPECT_EQ(keys_of(*queue.cut(1, {.token_budget = 4096})), (Keys{1}));
  EXPECT_FALSE(queue.cut(1, {.token_budget = 4096, .may_take_suspects = false}));
  EXPECT_EQ(keys_of(*queue.cut(1, {.token_budget = 4096})), (Keys{2}));
}

TEST(BatchQueue, ATextThatIsRemovedIsNotGivenOut) {
  BatchQueue queue;
  queue.add({1, 100});
  queue.add({2, 100});
  queue.add({3, 50});
  EXPECT_FALSE(queue.strike(*queue.cut(0, {.token_budget = 100}), 0));  // 1 is suspected now
  EXPECT_TRUE(queue.remove({1, 100}));
  EXPECT_TRUE(queue.remove({3, 50}));
  EXPECT_FALSE(queue.remove({3, 50}));
  EXPECT_EQ(queue.item_count(), 1U);
  EXPECT_EQ(queue.token_count(), 100U);
  EXPECT_EQ(keys_of(*queue.cut(1, {.token_budget = 4096})), (Keys{2}));
  EXPECT_FALSE(queue.first(1, {}));
}

TEST(BatchQueue, AStruckGroupComesBackToTheOnlyDevice) {
  BatchQueue queue;
  queue.add({1, 100});
  auto struck = queue.cut(0, {.token_budget = 200});
  EXPECT_FALSE(queue.strike(std::move(*struck), 0));
  EXPECT_FALSE(queue.cut(0, {.token_budget = 200}));
  EXPECT_TRUE(queue.cut(0, {.token_budget = 200, .is_only_device = true}));
}

TEST(BatchQueue, AKillFromOutsideIsNoStrike) {
  BatchQueue queue;
  queue.add({1, 100});
  for (int i = 0; i < 5; ++i) {
    auto batch = queue.cut(0, {.token_budget = 200});
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->strike_count, 0U);
    queue.give_back(std::move(*batch));
  }
}

// Whichever of n texts kills its worker, two deaths find it, and every other text is done exactly
// once.
TEST(BatchQueue, TwoDeathsFindTheTextThatKills) {
  constexpr std::size_t kCount = 64;
  for (ItemKey poison : {ItemKey{0}, ItemKey{17}, ItemKey{63}}) {
    SCOPED_TRACE(poison);
    BatchQueue queue;
    for (ItemKey key = 0; key < kCount; ++key) queue.add({key, 10});
    std::multiset<ItemKey> done;
    std::optional<ItemKey> found;
    int death_count = 0;
    for (std::size_t device = 0; queue.item_count() > 0; device = 1 - device) {
      auto batch = queue.cut(device, {.token_budget = 10'000});
      if (!batch) continue;
      const auto keys = keys_of(*batch);
      if (std::find(keys.begin(), keys.end(), poison) == keys.end()) {
        done.insert(keys.begin(), keys.end());
        continue;
      }
      ++death_count;
      if (const auto alone = queue.strike(std::move(*batch), device)) found = alone;
    }
    EXPECT_EQ(found, poison);
    EXPECT_EQ(done.size(), kCount - 1);
    EXPECT_EQ(std::set<ItemKey>(done.begin(), done.end()).size(), kCount - 1);
    EXPECT_EQ(death_count, 2);
  }
}

// Random adds, cuts, losses and strikes: no text is lost, none is given out twice at a time.
TEST(BatchQueue, LosesNothingUnderRandomFaults) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  BatchQueue queue;
  std::set<ItemKey> waiting;
  std::vector<std::uint32_t> lengths;  // by key
  std::vector<WorkBatch> out;
  ItemKey next = 0;
  std::size_t done_count = 0;
  for (int step = 0; step < 20'000; ++step) {
    const auto action = random() % 10;
    if (action < 4) {
      lengths.push_back(static_cast<std::uint32_t>(1 + random() % 300));
      waiting.insert(next);
      queue.add({next, lengths[next]});
      ++next;
      if (action == 0 && random() % 2 == 0) {
        const auto gone = *std::next(waiting.begin(), static_cast<long>(random() % waiting.size()));
        ASSERT_TRUE(queue.remove({gone, lengths[gone]}));
        waiting.erase(gone);
        ++done_count;
      }
    } else if (action < 7) {
      auto batch = queue.cut(random() % 3, {.token_budget = 1 + random() % 2000,
                                            .slot_count = 1 + random() % 5,
                                            .is_only_device = random() % 2 == 0});
      if (!batch) continue;
      for (const auto& item : batch->items) ASSERT_EQ(waiting.erase(item.key), 1U);
      out.push_back(std::move(*batch));
    } else if (!out.empty()) {
      std::swap(out[random() % out.size()], out.back());
      auto batch = std::move(out.back());
      out.pop_back();
      if (action == 7 && batch.strike_count == 0 && random() % 2 == 0) {
        for (const auto& item : batch.items) waiting.insert(item.key);
        queue.retry(std::move(batch), random() % 3);
      } else if (action == 7) {
        for (const auto& item : batch.items) waiting.insert(item.key);
        queue.give_back(std::move(batch));
      } else if (action == 8) {
        for (const auto& item : batch.items) waiting.insert(item.key);
        if (const auto alone = queue.strike(std::move(batch), random() % 3)) {
          ASSERT_EQ(waiting.erase(*alone), 1U);
          ++done_count;
        }
      } else {
        done_count += batch.items.size();
      }
    }
    ASSERT_EQ(queue.item_count(), waiting.size());
  }
  std::size_t out_count = 0;
  for (const auto& batch : out) out_count += batch.items.size();
  EXPECT_EQ(done_count + out_count + waiting.size(), next);
}

TEST(BatchQueue, ARetryRunsAsItIsOnAnotherDeviceAndAStrikeThenTakesItApart) {
  BatchQueue queue;
  for (ItemKey key = 1; key <= 3; ++key) queue.add({key, 100});
  queue.retry(*queue.cut(0, {.token_budget = 300}), 0);
  EXPECT_EQ(queue.item_count(), 3U);
  EXPECT_EQ(queue.token_count(), 300U);
  EXPECT_FALSE(queue.cut(0, {.token_budget = 300}));
  EXPECT_TRUE(queue.remove({2, 100}));  // whoever waited for it went away
  auto batch = queue.cut(1, {.token_budget = 100});
  ASSERT_TRUE(batch);
  EXPECT_EQ(keys_of(*batch), (Keys{1, 3}));
  EXPECT_EQ(batch->token_count, 200U);
  EXPECT_TRUE(batch->is_retry);
  EXPECT_FALSE(queue.strike(*std::move(batch), 1));
  auto alone = queue.cut(0, {.token_budget = 100});
  EXPECT_EQ(keys_of(*alone), (Keys{1}));
  EXPECT_FALSE(alone->is_retry);
  EXPECT_EQ(queue.strike(*std::move(alone), 0), ItemKey{1});
  EXPECT_EQ(keys_of(*queue.cut(0, {.token_budget = 100})), (Keys{3}));
  EXPECT_EQ(queue.item_count(), 0U);
}

}  // namespace
}  // namespace muster

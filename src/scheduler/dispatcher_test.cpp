#include "scheduler/dispatcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "scheduler/admission.h"
#include "scheduler/cost_model.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using Keys = std::vector<ItemKey>;

constexpr TimePoint kNow{};

DispatchDevice ready_device(std::vector<ModelId> models = {1}) {
  return {.is_eligible = true, .slot_count = 2, .token_budget = 1000, .models = std::move(models)};
}

Dispatcher with_devices(std::size_t count, DispatchOptions options = {}) {
  return Dispatcher(std::move(options), count);
}

void make_ready(Dispatcher& dispatcher, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dispatcher.set_device(i, ready_device(), kNow);
}

DispatchItem text(ItemKey key, std::uint32_t tokens = 100, Lane lane = Lane::Bulk,
                  ModelId model = 1) {
  return {.key = key, .model = model, .token_count = tokens, .lane = lane};
}

Keys keys_of(const std::optional<DispatchBatch>& batch) {
  Keys keys;
  if (!batch) return keys;
  for (const auto& item : batch->work.items) keys.push_back(item.key);
  return keys;
}

TEST(Dispatcher, GivesInteractiveTextsBeforeBulkOnes) {
  auto dispatcher = with_devices(1);
  make_ready(dispatcher, 1);
  dispatcher.add(text(1), kNow);
  dispatcher.add(text(2, 100, Lane::Interactive), kNow);
  const auto first = dispatcher.cut(0, kNow);
  EXPECT_EQ(keys_of(first), Keys{2});
  EXPECT_EQ(first->lane, Lane::Interactive);
  EXPECT_EQ(keys_of(dispatcher.cut(0, kNow)), Keys{1});
}

TEST(Dispatcher, ATextThatAQueryWaitsForGoesBeforeBulkTexts) {
  auto dispatcher = with_devices(1);
  make_ready(dispatcher, 1);
  for (ItemKey key = 1; key <= 3; ++key) dispatcher.add(text(key, 1000), kNow);
  dispatcher.lift(3, 7, kNow);
  EXPECT_EQ(dispatcher.tokens_ahead(Lane::Interactive), 1000U);
  const auto first = dispatcher.cut(0, kNow);
  EXPECT_EQ(keys_of(first), Keys{3});
  EXPECT_EQ(first->lane, Lane::Interactive);
  EXPECT_TRUE(dispatcher.is_with_device(3));
  EXPECT_FALSE(dispatcher.is_with_device(1));
  dispatcher.lift(3, 7, kNow);  // it is with the device already
  EXPECT_EQ(keys_of(dispatcher.cut(0, kNow)), Keys{1});
  EXPECT_EQ(dispatcher.queued_text_count(), 1U);
}

// A has six texts of 1,000 tokens waiting when B comes with two: A1 and A2 are with the device, so
// the ranks of A's are 0, 1000, ... 5000, of B's 1000 and 2000.
TEST(Dispatcher, FlowsOfALaneTakeTurns) {
  auto dispatcher = with_devices(1);
  make_ready(dispatcher, 1);
  const auto of = [](ItemKey key, FlowId flow) {
    auto item = text(key, 1000);
    item.flow = flow;
    return item;
  };
  for (ItemKey key = 1; key <= 6; ++key) dispatcher.add(of(key, 1), kNow);
  auto running = dispatcher.cut(0, kNow);
  auto waiting = dispatcher.cut(0, kNow);
  for (ItemKey key = 7; key <= 8; ++key) dispatcher.add(of(key, 2), kNow);
  // Of A's 4,000 that wait, 2,500 go before the last of B's 2,000 and 500 more.
  EXPECT_EQ(dispatcher.queue_state(1, Lane::Bulk, 2, 500).tokens_ahead, 2000U + 2000U + 2500U);
  Keys order;
  while (running) {
    dispatcher.on_served(0, *running, milliseconds(1));
    running = std::exchange(waiting, dispatcher.cut(0, kNow));
    for (const auto key : keys_of(waiting)) order.push_back(key);
  }
  EXPECT_EQ(order, (Keys{7, 3, 8, 4, 5, 6}));
}

// 1,000 tokens take a second: a bulk batch of 0.1 s runs, and nothing waits behind it while queries
// come; the query goes to whichever device is free first.
TEST(Dispatcher, NothingWaitsBehindABulkBatchWhileQueriesCome) {
  auto dispatcher = with_devices(2);
  make_ready(dispatcher, 2);
  ItemKey next = 1;
  const auto teach = [&](std::size_t device) {
    dispatcher.add(text(next++, 100), kNow);
    dispatcher.on_served(device, *dispatcher.cut(device, kNow), milliseconds(100));
  };
  teach(0);
  teach(1);
  for (int i = 0; i < 8; ++i) dispatcher.add(text(next++, 100), kNow);
  const auto first = dispatcher.cut(0, kNow);
  const auto second = dispatcher.cut(1, kNow);
  ASSERT_TRUE(first && second);
  const ItemKey query = next++;
  dispatcher.add(text(query, 10, Lane::Interactive), kNow);
  EXPECT_FALSE(dispatcher.cut(0, kNow));
  EXPECT_FALSE(dispatcher.cut(1, kNow));
  dispatcher.on_served(1, *second, milliseconds(100));
  EXPECT_EQ(keys_of(dispatcher.cut(1, kNow)), Keys{query});
  // Behind the query a bulk batch may wait; behind the other device's none until no query has come
  // for ten seconds.
  EXPECT_TRUE(dispatcher.cut(1, kNow));
  EXPECT_FALSE(dispatcher.cut(0, kNow));
  EXPECT_TRUE(dispatcher.cut(0, kNow + std::chrono::seconds(10)));
}

TEST(Dispatcher, GivesNoMoreBatchesThanADeviceHasSlots) {
  auto dispatcher = with_devices(1);
  make_ready(dispatcher, 1);
  for (ItemKey key = 1; key <= 3; ++key) dispatcher.add(text(key, 1000), kNow);
  const auto first = dispatcher.cut(0, kNow);
  EXPECT_TRUE(dispatcher.cut(0, kNow));
  EXPECT_FALSE(dispatcher.cut(0, kNow));
  dispatcher.on_served(0, *first, milliseconds(1));
  EXPECT_EQ(keys_of(dispatcher.cut(0, kNow)), Keys{3});
}

TEST(Dispatcher, AmongModelsTheOldestTextGoesFirst) {
  auto dispatcher = with_devices(2);
  dispatcher.set_device(0, ready_device({1, 2}), kNow);
  dispatcher.set_device(1, ready_device({2}), kNow);
  dispatcher.add(text(1, 100, Lane::Bulk, 1), kNow);
  dispatcher.add(text(2, 100, Lane::Bulk, 2), kNow);
  dispatcher.add(text(3, 100, Lane::Bulk, 1), kNow);
  const auto other = dispatcher.cut(1, kNow);  // it has only model 2
  EXPECT_EQ(keys_of(other), Keys{2});
  EXPECT_EQ(other->model, 2U);
  EXPECT_EQ(keys_of(dispatcher.cut(0, kNow)), Keys{1});  // 200 tokens over 2 slots: 100 each
}

TEST(Dispatcher, CutsTheSameBatchesAsOneQueueForOneModelAndLane) {
  auto dispatcher = with_devices(2, {.batch_time_most = Duration::max()});
  make_ready(dispatcher, 2);
  BatchQueue queue;
  for (ItemKey key = 1; key <= 400; ++key) {
    const auto tokens = static_cast<std::uint32_t>(10 + key * 37 % 90);
    dispatcher.add(text(key, tokens), kNow);
    queue.add({key, tokens});
  }
  for (std::size_t turn = 0; queue.item_count() > 0; ++turn) {
    const auto expected = queue.cut(turn % 2, {.token_budget = 1000, .slot_count = 4});
    const auto batch = dispatcher.cut(turn % 2, kNow);
    Keys keys;
    for (const auto& item : expected->items) keys.push_back(item.key);
    ASSERT_EQ(keys_of(batch), keys);
    dispatcher.on_served(turn % 2, *batch, milliseconds(100 + turn));
  }
  EXPECT_EQ(dispatcher.queued_text_count(), 0U);
}

TEST(Dispatcher, BoundsBulkBatchesByTheirPredictedTime) {
  auto dispatcher = with_devices(1, {.batch_time_most = milliseconds(100)});
  make_ready(dispatcher, 1);
  for (ItemKey key = 1; key <= 100; ++key) dispatcher.add(text(key), kNow);
  const auto first = dispatcher.cut(0, kNow);
  EXPECT_EQ(first->work.token_count, 1000U);  // nothing is known yet
  dispatcher.on_served(0, *first, milliseconds(250));
  // 0.25 ms a token: 400 tokens take 100 ms.
  EXPECT_EQ(dispatcher.cut(0, kNow)->work.token_count, 400U);
}

// 0.25 ms a token, so 300 take three quarters of 100 ms. A second device that begins at the same
// time takes half of that.
TEST(Dispatcher, WhileQueriesComeTheDevicesEndBulkBatchesOneAfterTheOther) {
  auto dispatcher = with_devices(2, {.batch_time_most = milliseconds(100)});
  make_ready(dispatcher, 2);
  ItemKey next = 1;
  for (const std::size_t device : {0, 1}) {
    dispatcher.add(text(next++, 1000), kNow);
    dispatcher.on_served(device, *dispatcher.cut(device, kNow), milliseconds(250));
  }
  while (next <= 2000) dispatcher.add(text(next++, 10), kNow);
  const auto tokens = [&](std::size_t device, TimePoint now) {
    const auto batch = dispatcher.cut(device, now);
    EXPECT_TRUE(batch);
    const auto count = batch ? batch->work.token_count : 0;
    if (batch) dispatcher.on_served(device, *batch, milliseconds(count) / 4);
    return count;
  };
  EXPECT_EQ(tokens(0, kNow), 400U);  // no query has come
  dispatcher.add(text(next++, 10, Lane::Interactive), kNow);
  EXPECT_EQ(tokens(0, kNow), 10U);
  EXPECT_EQ(tokens(1, kNow), 300U);
  const auto first = dispatcher.cut(0, kNow);
  EXPECT_EQ(first->work.token_count, 300U);
  const auto second = dispatcher.cut(1, kNow);
  EXPECT_EQ(second->work.token_count, 150U);
  dispatcher.on_served(1, *second, milliseconds(37));
  // From 45 ms on the first has 30 left: 67.5 is furthest from its ends, and 270 tokens take that.
  EXPECT_NEAR(static_cast<double>(tokens(1, kNow + milliseconds(45))), 270, 10);
  EXPECT_EQ(tokens(1, kNow + std::chrono::seconds(10)), 400U);
}

// One device of two lanes: the second lane ends its batch between two of the first one's.
TEST(Dispatcher, WhileQueriesComeTheLanesOfADeviceEndBulkBatchesOneAfterTheOther) {
  auto dispatcher = with_devices(1, {.batch_time_most = milliseconds(100)});
  auto device = ready_device();
  device.slot_count = 4;
  dispatcher.set_device(0, device, kNow);
  ItemKey next = 1;
  dispatcher.add(text(next++, 1000), kNow);
  dispatcher.on_served(0, *dispatcher.cut(0, kNow), milliseconds(250));
  while (next <= 2000) dispatcher.add(text(next++, 10), kNow);
  dispatcher.add(text(next++, 10, Lane::Interactive), kNow);
  dispatcher.on_served(0, *dispatcher.cut(0, kNow), Duration(milliseconds(10)) / 4);
  EXPECT_EQ(dispatcher.cut(0, kNow)->work.token_count, 300U);
  EXPECT_EQ(dispatcher.cut(0, kNow)->work.token_count, 150U);
}

// Two devices that take 0.1 ms for a token, the first with both of its slots full and the second
// with one, 100 tokens in each; and then texts of 64 tokens.
std::size_t size_of_next_cut(std::size_t text_count) {
  auto dispatcher = with_devices(2);
  make_ready(dispatcher, 2);
  for (ItemKey key = 1; key <= 2; ++key) {
    dispatcher.add(text(key, 1000), kNow);
    dispatcher.on_served(key - 1, *dispatcher.cut(key - 1, kNow), milliseconds(100));
  }
  ItemKey key = 3;
  for (const std::size_t device : {0, 0, 1}) {
    dispatcher.add(text(key++), kNow);
    EXPECT_TRUE(dispatcher.cut(device, kNow));
  }
  for (std::size_t i = 0; i < text_count; ++i) {
    dispatcher.add(text(key++, 64, Lane::Interactive), kNow);
  }
  return dispatcher.cut(1, kNow)->work.items.size();
}

TEST(Dispatcher, ASlotTakesWhatMakesAllDevicesEndTogether) {
  // 512 wait and 300 are under way: 406 for each device, of which this one has 100. Four texts are
  // 256 tokens, five 320.
  EXPECT_EQ(size_of_next_cut(8), 4U);
}

TEST(Dispatcher, ASlotTakesFiftyMillisecondsOfItsPartAtOnce) {
  // (1600 + 300) / 2 - 100 = 850, which take 85 ms. Seven texts are 448 tokens, eight 512.
  EXPECT_EQ(size_of_next_cut(25), 7U);
}

// Two devices that take 1 us for a token, and texts of 100. Of 900 tokens a half would be 450, but
// all of them take 0.9 ms; of 1,600 it would be 800, and 1,000 are a millisecond; of 3,000 it is
// 1,500, which is more. Queries are divided: latency counts there.
TEST(Dispatcher, WhatIsDoneInAMillisecondIsNotDivided) {
  struct Case {
    std::size_t text_count, taken;
    Lane lane = Lane::Bulk;
  };
  const std::vector<Case> cases = {{9, 9}, {16, 10}, {30, 15}, {16, 8, Lane::Interactive}};
  for (const auto& [text_count, taken, lane] : cases) {
    auto dispatcher = with_devices(2);
    auto device = ready_device();
    device.token_budget = 4000;
    for (std::size_t i = 0; i < 2; ++i) dispatcher.set_device(i, device, kNow);
    for (ItemKey key = 1; key <= 2; ++key) {
      dispatcher.add(text(key, 1000), kNow);
      dispatcher.on_served(key - 1, *dispatcher.cut(key - 1, kNow), milliseconds(1));
    }
    for (ItemKey key = 3; key < 3 + text_count; ++key) dispatcher.add(text(key, 100, lane), kNow);
    EXPECT_EQ(dispatcher.cut(0, kNow)->work.items.size(), taken);
  }
}

TEST(Dispatcher, NothingIsGivenToWaitBehindABatchThatTakesLong) {
  auto dispatcher = with_devices(2, {.batch_time_most = milliseconds(100)});
  make_ready(dispatcher, 2);
  dispatcher.add(text(1, 1000), kNow);
  dispatcher.on_served(0, *dispatcher.cut(0, kNow), milliseconds(300));  // 0.3 ms a token
  for (ItemKey key = 2; key <= 5; ++key) dispatcher.add(text(key, 1000), kNow);
  const auto running = dispatcher.cut(0, kNow);
  ASSERT_TRUE(running);
  EXPECT_FALSE(dispatcher.cut(0, kNow));  // 0.3 s is more than twice 0.1 s
  EXPECT_TRUE(dispatcher.cut(1, kNow));
  EXPECT_TRUE(dispatcher.cut(1, kNow));  // nobody knows how long it takes there
  dispatcher.on_served(0, *running, milliseconds(300));
  EXPECT_TRUE(dispatcher.cut(0, kNow));
}

TEST(Dispatcher, ATextWaitsUntilADeviceIsEligible) {
  auto dispatcher = with_devices(1);
  dispatcher.add(text(1), kNow);
  EXPECT_FALSE(dispatcher.cut(0, kNow));
  dispatcher.set_device(0, ready_device({2}), kNow);
  EXPECT_FALSE(dispatcher.cut(0, kNow));
  dispatcher.set_device(0, ready_device({1}), kNow);
  EXPECT_EQ(keys_of(dispatcher.cut(0, kNow)), Keys{1});
}

TEST(Dispatcher, ARemovedTextIsNotGivenOut) {
  auto dispatcher = with_devices(1);
  make_ready(dispatcher, 1);
  dispatcher.add(text(1), kNow);
  dispatcher.add(text(2), kNow);
  EXPECT_TRUE(dispatcher.remove(1));
  EXPECT_FALSE(dispatcher.remove(1));
  EXPECT_EQ(dispatcher.queued_token_count(), 100U);
  EXPECT_EQ(keys_of(dispatcher.cut(0, kNow)), Keys{2});
  EXPECT_FALSE(dispatcher.remove(2));  // with a device
}

TEST(Dispatcher, WhatIsGivenBackWaitsAgain) {
  auto dispatcher = with_devices(2);
  make_ready(dispatcher, 2);
  dispatcher.add(text(1), kNow);
  auto batch = dispatcher.cut(0, kNow);
  EXPECT_EQ(dispatcher.in_flight_token_count(0), 100U);
  EXPECT_EQ(dispatcher.queued_text_count(), 0U);
  dispatcher.give_back(0, *batch, kNow);
  EXPECT_EQ(dispatcher.in_flight_token_count(0), 0U);
  EXPECT_EQ(dispatcher.queued_text_count(), 1U);
  EXPECT_EQ(keys_of(dispatcher.cut(1, kNow)), Keys{1});
}

TEST(Dispatcher, ATextThatABatchCameBackWithoutIsForgotten) {
  auto dispatcher = with_devices(1);
  make_ready(dispatcher, 1);
  dispatcher.add(text(1), kNow);
  dispatcher.add(text(2), kNow);
  auto first = dispatcher.cut(0, kNow);
  auto second = dispatcher.cut(0, kNow);
  ASSERT_EQ(keys_of(first), Keys{1});
  first->work.items.clear();  // cancelled meanwhile
  EXPECT_FALSE(dispatcher.strike(0, *first, kNow));
  dispatcher.give_back(0, *second, kNow);
  EXPECT_EQ(dispatcher.queued_text_count(), 1U);
  EXPECT_EQ(dispatcher.in_flight_token_count(0), 0U);
  dispatcher.add(text(1), kNow);  // its key is free again
}

// The owner takes out those whose rows it has: the books count what is left.
TEST(Dispatcher, ASuspectThatCameBackWithFewerTextsCountsAsThose) {
  auto dispatcher = with_devices(2);
  make_ready(dispatcher, 2);
  for (ItemKey key = 1; key <= 3; ++key) dispatcher.add(text(key, 10), kNow);
  dispatcher.retry(0, *dispatcher.cut(0, kNow));
  auto suspect = dispatcher.cut(1, kNow);
  ASSERT_EQ(keys_of(suspect), (Keys{1, 2, 3}));
  std::erase_if(suspect->work.items, [](const WorkItem& item) { return item.key == 1; });
  dispatcher.give_back(1, *suspect, kNow);
  EXPECT_EQ(dispatcher.tokens_ahead(Lane::Bulk), 20U);
  suspect = dispatcher.cut(1, kNow);
  ASSERT_EQ(keys_of(suspect), (Keys{2, 3}));
  EXPECT_EQ(dispatcher.in_flight_token_count(1), 20U);
  dispatcher.on_served(1, *suspect, milliseconds(1));
  EXPECT_EQ(dispatcher.tokens_ahead(Lane::Bulk), 0U);
}

TEST(Dispatcher, ATextThatKillsTwiceIsReturnedAndASuspectHasItsDeviceForItself) {
  auto dispatcher = with_devices(2);
  make_ready(dispatcher, 2);
  for (ItemKey key = 1; key <= 8; ++key) dispatcher.add(text(key, 10), kNow);
  auto batch = dispatcher.cut(0, kNow);
  ASSERT_EQ(batch->work.items.size(), 6U);  // 64 tokens are the least: six texts of ten
  EXPECT_FALSE(dispatcher.strike(0, *batch, kNow));
  auto suspect = dispatcher.cut(1, kNow);
  EXPECT_EQ(keys_of(suspect), Keys{1});
  EXPECT_FALSE(dispatcher.cut(1, kNow));  // nothing beside it
  EXPECT_EQ(keys_of(dispatcher.cut(0, kNow)), (Keys{7, 8}));
  EXPECT_EQ(dispatcher.strike(1, *suspect, kNow), 1U);
  EXPECT_EQ(dispatcher.queued_text_count(), 5U);
}

TEST(Dispatcher, OneDeviceEmptiesItselfForASuspectAndTheOthersGoOn) {
  auto dispatcher = with_devices(3);
  make_ready(dispatcher, 3);
  dispatcher.add(text(1, 1000), kNow);
  EXPECT_FALSE(dispatcher.strike(0, *dispatcher.cut(0, kNow), kNow));
  auto off = ready_device();
  off.is_eligible = false;
  for (ItemKey key = 2; key <= 6; ++key) dispatcher.add(text(key, 1000, Lane::Interactive), kNow);
  const auto suspect = dispatcher.cut(1, kNow);  // it is idle, and takes it before the queries
  EXPECT_EQ(keys_of(suspect), Keys{1});
  EXPECT_EQ(keys_of(dispatcher.cut(2, kNow)), Keys{2});
  dispatcher.give_back(1, *suspect, kNow);
  dispatcher.set_device(1, off, kNow);
  EXPECT_FALSE(dispatcher.cut(2, kNow));  // it lets 2 end first
  EXPECT_EQ(keys_of(dispatcher.cut(0, kNow)), Keys{3});
  dispatcher.set_device(2, off, kNow);  // it may not take it any more
  dispatcher.set_device(1, ready_device(), kNow);
  EXPECT_EQ(keys_of(dispatcher.cut(1, kNow)), Keys{1});
}

TEST(Dispatcher, ADeviceWithFullMemoryTakesNothingUnlessAllAreFull) {
  auto dispatcher = with_devices(2, {.memory_threshold = 0.8});
  auto full = ready_device();
  full.memory_total_bytes = 100;
  full.memory_free_bytes = 10;
  dispatcher.set_device(0, full, kNow);
  dispatcher.set_device(1, ready_device(), kNow);
  dispatcher.add(text(1), kNow);
  EXPECT_FALSE(dispatcher.cut(0, kNow));
  dispatcher.set_device(1, full, kNow);
  EXPECT_EQ(keys_of(dispatcher.cut(0, kNow)), Keys{1});
}

TEST(Dispatcher, ForecastsFromMeasuredSpeeds) {
  auto dispatcher = with_devices(2);
  make_ready(dispatcher, 2);
  EXPECT_FALSE(dispatcher.tokens_per_second(1));
  EXPECT_FALSE(dispatcher.predicted_drain());
  dispatcher.add(text(1, 1000), kNow);
  const auto batch = dispatcher.cut(0, kNow);
  dispatcher.on_served(0, *batch, milliseconds(500));  // 2000 tokens a second
  EXPECT_EQ(dispatcher.predict(0, 1, 1000), Duration(milliseconds(500)));
  EXPECT_FALSE(dispatcher.predict(1, 1, 1000));
  EXPECT_DOUBLE_EQ(*dispatcher.tokens_per_second(1), 4000);  // the other counts as its equal
  EXPECT_EQ(dispatcher.predicted_drain(), Duration{0});
  dispatcher.add(text(2, 1000), kNow);
  const auto running = dispatcher.cut(0, kNow);  // 0.5 s on device 0
  dispatcher.add(text(3, 500), kNow);            // 0.25 s on device 1
  EXPECT_NEAR(seconds(*dispatcher.predicted_drain()), 0.5, 1e-6);
  dispatcher.add(text(4, 1500), kNow);  // (1000 + 2000) / 4000 in all
  EXPECT_NEAR(seconds(*dispatcher.predicted_drain()), 0.75, 1e-6);
}

TEST(Dispatcher, BulkTextsThatWaitAreNotAheadOfAnInteractiveOne) {
  auto dispatcher = with_devices(1);
  make_ready(dispatcher, 1);
  dispatcher.add(text(1, 1000), kNow);
  auto running = dispatcher.cut(0, kNow);
  dispatcher.add(text(2, 300), kNow);
  dispatcher.add(text(3, 20, Lane::Interactive), kNow);
  EXPECT_EQ(dispatcher.queued_token_count(), 320U);
  EXPECT_EQ(dispatcher.tokens_ahead(Lane::Interactive), 1020U);
  EXPECT_EQ(dispatcher.tokens_ahead(Lane::Bulk), 1320U);
  dispatcher.give_back(0, *running, kNow);
  EXPECT_EQ(dispatcher.tokens_ahead(Lane::Interactive), 20U);
  EXPECT_EQ(dispatcher.tokens_ahead(Lane::Bulk), 1320U);
  EXPECT_TRUE(dispatcher.remove(3));
  EXPECT_EQ(dispatcher.tokens_ahead(Lane::Interactive), 0U);
  EXPECT_EQ(dispatcher.tokens_ahead(Lane::Bulk), 1300U);
}

TEST(Dispatcher, KeepsTheNewestDecisions) {
  auto dispatcher = with_devices(1);
  make_ready(dispatcher, 1);
  for (ItemKey key = 1; key <= 300; ++key) {
    dispatcher.add(text(key), kNow + milliseconds(key));
    dispatcher.on_served(0, *dispatcher.cut(0, kNow + milliseconds(key)), milliseconds(1));
  }
  const auto decisions = dispatcher.decisions();
  ASSERT_EQ(decisions.size(), 256U);
  EXPECT_EQ(decisions.back().at, kNow + milliseconds(300));
  EXPECT_EQ(decisions.back().text_count, 1U);
  EXPECT_EQ(decisions.back().token_count, 100U);
  EXPECT_EQ(decisions.back().reason, "free slot; 1 of 1 texts that wait for any device");
}

TEST(Dispatcher, AForgottenModelIsLearntAnew) {
  auto dispatcher = with_devices(1);
  make_ready(dispatcher, 1);
  dispatcher.add(text(1), kNow);
  const auto batch = dispatcher.cut(0, kNow);
  dispatcher.forget(1);
  dispatcher.on_served(0, *batch, milliseconds(10));  // the last that was with a device
  EXPECT_FALSE(dispatcher.predict(0, 1, 100));
}

TEST(Dispatcher, ASuspectWaitsForADeviceThatStarts) {
  auto dispatcher = with_devices(2);
  make_ready(dispatcher, 1);
  DispatchDevice other;
  other.coming = {1};
  dispatcher.set_device(1, other, kNow);
  dispatcher.add(text(1), kNow);
  dispatcher.retry(0, *dispatcher.cut(0, kNow));
  EXPECT_FALSE(dispatcher.cut(0, kNow));
  dispatcher.add(text(2), kNow);
  const auto second = dispatcher.cut(0, kNow);  // others do not wait
  EXPECT_EQ(keys_of(second), Keys{2});
  dispatcher.on_served(0, *second, milliseconds(1));
  EXPECT_FALSE(dispatcher.cut(0, kNow));
  other.coming.clear();  // it could not start
  dispatcher.set_device(1, other, kNow);
  EXPECT_EQ(keys_of(dispatcher.cut(0, kNow)), Keys{1});
}

}  // namespace
}  // namespace muster

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "scheduler/dispatcher.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using Counts = std::vector<std::uint64_t>;

constexpr TimePoint kNow{};

DispatchDevice ready_device() {
  return {.is_eligible = true, .slot_count = 2, .token_budget = 100, .models = {1}};
}

DispatchItem text(ItemKey key, std::uint32_t tokens = 100, ModelId model = 1) {
  return {.key = key, .model = model, .token_count = tokens};
}

DispatchDevice with_memory(std::uint64_t total, std::uint64_t free) {
  auto device = ready_device();
  device.memory_total_bytes = total;
  device.memory_free_bytes = free;
  return device;
}

/// A dispatcher whose devices are all ready, and where each text is bound.
struct Placing {
  Dispatcher dispatcher;
  std::size_t count;
  ItemKey next = 1;

  Placing(Strategy strategy, std::size_t device_count, DispatchOptions options = {})
      : dispatcher(
            [&] {
              options.strategy = strategy;
              return options;
            }(),
            device_count),
        count(device_count) {
    for (std::size_t i = 0; i < count; ++i) dispatcher.set_device(i, ready_device(), kNow);
  }

  Counts bound() const {
    Counts tokens;
    for (std::size_t i = 0; i < count; ++i) tokens.push_back(dispatcher.bound_token_count(i));
    return tokens;
  }

  /// The device that a new text is bound to.
  std::size_t place(DispatchItem item) {
    item.key = next++;
    const auto before = bound();
    dispatcher.add(item, kNow);
    const auto after = bound();
    for (std::size_t i = 0; i < count; ++i) {
      if (after[i] != before[i]) return i;
    }
    return count;
  }
  std::size_t place(std::uint32_t tokens = 100) { return place(text(0, tokens)); }

  /// Lets a device serve a batch of 100 tokens in this time.
  void teach(std::size_t device, Duration duration) {
    std::vector<DispatchDevice> states;
    for (std::size_t i = 0; i < count; ++i) {
      states.push_back(dispatcher.device(i));
      auto off = states.back();
      off.is_eligible = i == device;
      dispatcher.set_device(i, off, kNow);
    }
    dispatcher.add(text(next++), kNow);
    dispatcher.on_served(device, *dispatcher.cut(device, kNow), duration);
    for (std::size_t i = 0; i < count; ++i) dispatcher.set_device(i, states[i], kNow);
  }
};

TEST(Placement, AutoBindsNothing) {
  Placing placing(Strategy::Auto, 2);
  EXPECT_EQ(placing.place(), 2U);
  EXPECT_EQ(placing.dispatcher.queued_text_count(), 1U);
}

TEST(Placement, LeastWorkCountsSecondsAndNotTexts) {
  Placing placing(Strategy::LeastWork, 2);
  placing.teach(0, milliseconds(100));  // 1000 tokens a second
  placing.teach(1, milliseconds(400));  // 250
  EXPECT_EQ(placing.place(100), 0U);    // 0.1 s against 0.4 s
  EXPECT_EQ(placing.place(100), 0U);    // 0.2 s against 0.4 s
  EXPECT_EQ(placing.place(100), 0U);    // 0.3 s against 0.4 s
  EXPECT_EQ(placing.place(150), 0U);    // 0.45 s against 0.6 s
  EXPECT_EQ(placing.place(100), 1U);    // 0.55 s against 0.4 s
}

TEST(Placement, ADeviceOfTwiceTheWeightGetsTwiceTheWork) {
  Placing placing(Strategy::LeastWork, 2);
  auto heavy = ready_device();
  heavy.weight = 2;
  placing.dispatcher.set_device(1, heavy, kNow);
  for (int i = 0; i < 300; ++i) placing.place(10);
  EXPECT_EQ(placing.bound(), (Counts{1000, 2000}));
}

TEST(Placement, RoundRobinGoesOnWhereItWasAfterAChangeOfDevices) {
  Placing placing(Strategy::RoundRobin, 3);
  EXPECT_EQ(placing.place(), 0U);
  auto off = ready_device();
  off.is_eligible = false;
  placing.dispatcher.set_device(1, off, kNow);
  EXPECT_EQ(placing.place(), 2U);
  placing.dispatcher.set_device(1, ready_device(), kNow);
  EXPECT_EQ(placing.place(), 0U);
  EXPECT_EQ(placing.place(), 1U);
  EXPECT_EQ(placing.place(), 2U);
}

TEST(Placement, RoundRobinGivesALightDeviceFewerTurns) {
  Placing placing(Strategy::RoundRobin, 2);
  auto light = ready_device();
  light.weight = 0.25;
  placing.dispatcher.set_device(1, light, kNow);
  for (int i = 0; i < 100; ++i) placing.place(1);
  EXPECT_EQ(placing.bound(), (Counts{80, 20}));
}

TEST(Placement, MemoryUsageFillsDevicesInProportionToTheirFreeMemory) {
  Placing placing(Strategy::MemoryUsage, 3, {.memory_threshold = 0.8});
  placing.dispatcher.set_device(0, with_memory(1000, 300), kNow);
  placing.dispatcher.set_device(1, with_memory(1000, 600), kNow);
  placing.dispatcher.set_device(2, with_memory(1000, 199), kNow);  // above the threshold
  EXPECT_EQ(placing.place(), 1U);
  for (int i = 0; i < 899; ++i) placing.place();
  const auto bound = placing.bound();
  EXPECT_EQ(bound[2], 0U);
  EXPECT_NEAR(static_cast<double>(bound[1]) / static_cast<double>(bound[0]), 2.0, 0.02);
}

TEST(Placement, NothingGoesToAFullDeviceUnlessAllAreFull) {
  for (const auto strategy :
       {Strategy::LeastWork, Strategy::RoundRobin, Strategy::MemoryUsage, Strategy::ComputeLoad,
        Strategy::TaskType, Strategy::StaticPartition}) {
    SCOPED_TRACE(strategy_name(strategy));
    Placing placing(strategy, 2);
    placing.dispatcher.set_device(0, with_memory(1000, 100), kNow);
    placing.dispatcher.set_device(1, with_memory(1000, 500), kNow);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(placing.place(), 1U);
    placing.dispatcher.set_device(1, with_memory(1000, 100), kNow);
    for (int i = 0; i < 50; ++i) placing.place();
    EXPECT_GT(placing.bound()[0], 0U);
  }
}

TEST(Placement, ComputeLoadLooksAtQueuedSecondsAndThenAtUtilization) {
  Placing placing(Strategy::ComputeLoad, 2);
  auto busy = ready_device();
  busy.utilization = 0.9;
  placing.dispatcher.set_device(0, busy, kNow);
  auto calm = ready_device();
  calm.utilization = 0.1;
  placing.dispatcher.set_device(1, calm, kNow);
  EXPECT_EQ(placing.place(), 1U);  // both have nothing queued
  EXPECT_EQ(placing.place(), 0U);  // less is queued there, whatever its utilization
}

TEST(Placement, TaskTypeStaysInItsPoolAndBorrowsWhenThePoolIsGone) {
  DispatchOptions options;
  options.pools[static_cast<std::size_t>(RequestType::Query)] = {0};
  options.pools[static_cast<std::size_t>(RequestType::Document)] = {1, 2};
  Placing placing(Strategy::TaskType, 3, options);
  auto query = text(0);
  query.type = RequestType::Query;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(placing.place(query), 0U);
  for (int i = 0; i < 4; ++i) placing.place(text(0));
  EXPECT_EQ(placing.bound(), (Counts{400, 200, 200}));
  auto off = ready_device();
  off.is_eligible = false;
  placing.dispatcher.set_device(0, off, kNow);  // its four queries move to the others
  EXPECT_EQ(placing.bound(), (Counts{0, 400, 400}));
}

TEST(Placement, StaticPartitionMovesOnlyTheTextsOfADeviceThatGoes) {
  DispatchOptions options{.load_bound = 1e9};
  Placing placing(Strategy::StaticPartition, 4, options);
  std::map<std::uint64_t, std::size_t> homes;
  std::array<int, 4> counts{};
  for (std::uint64_t affinity = 0; affinity < 4000; ++affinity) {
    auto item = text(0, 1);
    item.affinity = affinity;
    homes[affinity] = placing.place(item);
    ++counts[homes[affinity]];
  }
  // A binomial of 4000 and 1/4 has a standard deviation of 27; five of them.
  for (const auto of_device : counts) EXPECT_NEAR(of_device, 1000, 137);
  auto off = ready_device();
  off.is_eligible = false;
  placing.dispatcher.set_device(2, off, kNow);
  for (std::uint64_t affinity = 0; affinity < 4000; ++affinity) {
    auto item = text(0, 1);
    item.affinity = affinity;
    const auto home = placing.place(item);
    EXPECT_NE(home, 2U);
    if (homes[affinity] != 2) {
      EXPECT_EQ(home, homes[affinity]);
    }
  }
}

TEST(Placement, StaticPartitionGivesSharesByWeightAndBoundsTheLoad) {
  Placing placing(Strategy::StaticPartition, 2, {.load_bound = 1e9});
  auto heavy = ready_device();
  heavy.weight = 3;
  placing.dispatcher.set_device(1, heavy, kNow);
  for (std::uint64_t affinity = 0; affinity < 4000; ++affinity) {
    auto item = text(0, 1);
    item.affinity = affinity;
    placing.place(item);
  }
  EXPECT_NEAR(static_cast<double>(placing.bound()[1]), 3000, 137);

  Placing hot(Strategy::StaticPartition, 4, {.load_bound = 1.25});
  for (int i = 0; i < 400; ++i) hot.place(text(0, 10));  // all with the same hash
  const auto bound = hot.bound();
  EXPECT_EQ(*std::max_element(bound.begin(), bound.end()), 1250U);  // of a mean of 1000
}

TEST(Placement, TheLowestValueOfTheExpressionWins) {
  const auto expression =
      PlacementExpression::parse("memory_used_share > 0.5 ? 1000 : outstanding_tokens - index");
  ASSERT_TRUE(expression);
  Placing placing(Strategy::Expression, 3, {.memory_threshold = 1, .expression = *expression});
  placing.dispatcher.set_device(0, with_memory(100, 40), kNow);
  placing.dispatcher.set_device(1, with_memory(100, 60), kNow);
  // Device 2 tells no memory and is passed over.
  EXPECT_EQ(placing.place(500), 1U);  // -1 against 1000
  EXPECT_EQ(placing.place(600), 1U);  // 499
  EXPECT_EQ(placing.place(100), 0U);  // 1000 against 1099
}

TEST(Placement, WhatIsBoundMovesWhenItsDeviceLosesTheModel) {
  Placing placing(Strategy::RoundRobin, 2);
  for (int i = 0; i < 4; ++i) placing.place();
  EXPECT_EQ(placing.bound(), (Counts{200, 200}));
  auto other = ready_device();
  other.models = {2};
  placing.dispatcher.set_device(0, other, kNow);
  EXPECT_EQ(placing.bound(), (Counts{0, 400}));
  auto off = ready_device();
  off.is_eligible = false;
  placing.dispatcher.set_device(1, off, kNow);  // nobody has the model now
  EXPECT_EQ(placing.bound(), (Counts{0, 0}));
  EXPECT_EQ(placing.dispatcher.queued_text_count(), 4U);
  placing.dispatcher.set_device(0, ready_device(), kNow);
  EXPECT_EQ(placing.bound(), (Counts{400, 0}));
  EXPECT_EQ(placing.dispatcher.decisions().back().reason, "its turn, of 1 devices");
}

TEST(Placement, WhatIsBoundIsCutByItsDeviceAlone) {
  Placing placing(Strategy::RoundRobin, 2);
  placing.place();
  EXPECT_FALSE(placing.dispatcher.cut(1, kNow));
  const auto batch = placing.dispatcher.cut(0, kNow);
  ASSERT_TRUE(batch);
  EXPECT_EQ(placing.bound(), (Counts{0, 0}));
  EXPECT_EQ(placing.dispatcher.in_flight_token_count(0), 100U);
  placing.dispatcher.give_back(0, *batch, kNow);
  EXPECT_EQ(placing.bound(), (Counts{0, 100}));  // the next turn
}

}  // namespace
}  // namespace muster

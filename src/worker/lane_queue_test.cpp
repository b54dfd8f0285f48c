#include "worker/lane_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace muster {
namespace {

constexpr engine::SharingLimits kEverything{.pass = 1, .share = 0};

TEST(LaneQueueTest, EveryItemIsTakenOnceAndCloseEndsTheTakers) {
  engine::LaneTeam team(3);
  LaneQueue<int> queue(team, 1000);
  std::vector<std::atomic<int>> taken(1000);
  std::vector<std::thread> lanes;
  for (std::size_t lane = 0; lane < 3; ++lane) {
    lanes.emplace_back([&, lane] {
      while (const auto item = queue.take(lane)) ++taken[static_cast<std::size_t>(*item)];
    });
  }
  for (int item = 0; item < 1000; ++item) {
    ASSERT_TRUE(queue.push(item));
    // Now and then all of them sleep first.
    while (item % 100 == 99 && team.sleeper_count() < 3) std::this_thread::yield();
  }
  queue.close();
  for (auto& lane : lanes) lane.join();
  for (const auto& count : taken) ASSERT_EQ(count, 1);
  EXPECT_FALSE(queue.push(0));
}

// A full load: each of two batches is computed by a lane of its own, both at the same time.
TEST(LaneQueueTest, WithABatchForEachLaneNobodyHelps) {
  engine::LaneTeam team(2, kEverything);
  LaneQueue<int> queue(team, 2);
  std::atomic<int> computing{0};
  std::vector<std::thread> lanes;
  for (std::size_t lane = 0; lane < 2; ++lane) {
    lanes.emplace_back([&, lane] {
      engine::LaneSeat seat(team, lane);
      const auto item = queue.take(lane);
      ASSERT_TRUE(item);
      ++computing;
      while (computing < 2) std::this_thread::yield();  // for ever, were one lane to do both
      seat.begin_pass(1'000'000);
      EXPECT_EQ(seat.lanes_now(1'000'000), 1U);
      seat.share({.count = 10, .work = 1'000'000},
                 [&](std::size_t, std::size_t member) { EXPECT_EQ(member, lane); });
      EXPECT_EQ(seat.take_helped().count(), 0);
    });
  }
  ASSERT_TRUE(queue.push(1));
  ASSERT_TRUE(queue.push(2));
  for (auto& lane : lanes) lane.join();
}

// The second batch comes while its lane is at an item of the first one's pass.
TEST(LaneQueueTest, AHelperTakesABatchBeforeTheNextItem) {
  engine::LaneTeam team(2, kEverything);
  LaneQueue<int> queue(team, 2);
  std::atomic<bool> has_taken{false};
  std::thread helper([&] {
    const auto item = queue.take(1);
    EXPECT_EQ(item, 7);
    has_taken = true;
  });
  while (team.idle_count() < 1) std::this_thread::yield();
  engine::LaneSeat seat(team, 0);
  seat.begin_pass(1'000'000);
  std::atomic<int> by_helper{0};
  seat.share({.count = 50, .work = 1}, [&](std::size_t, std::size_t member) {
    if (member == 1) {
      ++by_helper;
      EXPECT_TRUE(queue.push(7));
    } else {
      while (!has_taken) std::this_thread::yield();
    }
  });
  EXPECT_EQ(by_helper, 1);
  helper.join();
}

}  // namespace
}  // namespace muster

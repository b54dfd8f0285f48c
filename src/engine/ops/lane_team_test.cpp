#include "engine/ops/lane_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <new>
#include <thread>
#include <vector>

namespace muster::engine {
namespace {

constexpr SharingLimits kEverything{.pass = 1, .share = 0};  // no work is too little
constexpr std::uint64_t kMuch = 1'000'000;

// Lanes that are idle from the start to the end of a test; number 0 is the test's own.
class IdleLanes {
 public:
  explicit IdleLanes(LaneTeam& team) : team_(team), calls_(team.call_count()) {
    for (std::size_t member = 1; member < team.size(); ++member) {
      threads_.emplace_back([this, member] { team_.help(member, calls_); });
    }
    while (team_.idle_count() + 1 < team_.size()) std::this_thread::yield();
  }
  ~IdleLanes() {
    team_.call_all();
    for (auto& thread : threads_) thread.join();
  }
  IdleLanes(const IdleLanes&) = delete;
  IdleLanes& operator=(const IdleLanes&) = delete;

 private:
  LaneTeam& team_;
  const std::uint32_t calls_;
  std::vector<std::thread> threads_;
};

TEST(LaneTeamTest, EveryItemIsDoneOnceAndBeforeShareReturns) {
  for (const std::size_t size : {1U, 2U, 3U, 7U}) {
    LaneTeam team(size, kEverything);
    const IdleLanes idle(team);
    LaneSeat seat(team, 0);
    seat.begin_pass(kMuch);
    for (int round = 0; round < 2000; ++round) {
      const std::size_t count = static_cast<std::size_t>(round) % 13;
      std::vector<int> done(count);  // a race would lose an increment, or be seen by sanitizers
      seat.share({.count = count, .work = 1}, [&](std::size_t index, std::size_t member) {
        ASSERT_LT(member, size);
        ++done[index];
      });
      ASSERT_EQ(done, std::vector<int>(count, 1)) << "round " << round;
    }
  }
}

// Both items wait for each other, so that nobody can do both.
TEST(LaneTeamTest, AnIdleLaneThatSleepsIsWokenAndItsTimeIsCounted) {
  LaneTeam team(2, kEverything);
  const IdleLanes idle(team);
  LaneSeat seat(team, 0);
  for (int round = 0; round < 20; ++round) {
    while (team.sleeper_count() < 1) std::this_thread::yield();
    seat.begin_pass(kMuch);
    std::atomic<int> begun{0};
    seat.share({.count = 2, .work = 1}, [&](std::size_t, std::size_t) {
      ++begun;
      while (begun < 2) std::this_thread::yield();
    });
    EXPECT_EQ(begun, 2);
    EXPECT_GT(seat.take_helped().count(), 0);
    EXPECT_EQ(seat.take_helped().count(), 0);
  }
}

TEST(LaneTeamTest, WithNobodyIdleALaneDoesEverythingItself) {
  LaneTeam team(2, kEverything);
  std::vector<std::thread> lanes;
  std::atomic<int> begun{0};
  for (std::size_t lane = 0; lane < 2; ++lane) {
    lanes.emplace_back([&, lane] {
      LaneSeat seat(team, lane);
      seat.begin_pass(kMuch);
      ++begun;
      while (begun < 2) std::this_thread::yield();
      for (int round = 0; round < 1000; ++round) {
        seat.share({.count = 5, .work = 1},
                   [&](std::size_t, std::size_t member) { ASSERT_EQ(member, lane); });
      }
      EXPECT_EQ(seat.take_helped().count(), 0);
    });
  }
  for (auto& lane : lanes) lane.join();
}

// Two lanes compute and a third helps whichever shares out; none gets items of the other.
TEST(LaneTeamTest, LanesThatShareAtTheSameTimeKeepTheirItemsApart) {
  LaneTeam team(3, kEverything);
  const auto calls = team.call_count();
  std::thread helper([&] { team.help(2, calls); });
  while (team.idle_count() < 1) std::this_thread::yield();
  std::vector<std::thread> lanes;
  for (std::size_t lane = 0; lane < 2; ++lane) {
    lanes.emplace_back([&, lane] {
      LaneSeat seat(team, lane);
      seat.begin_pass(kMuch);
      for (int round = 0; round < 2000; ++round) {
        std::vector<int> done(7);
        seat.share({.count = 7, .work = 1}, [&](std::size_t index, std::size_t member) {
          ASSERT_TRUE(member == lane || member == 2);
          ++done[index];
        });
        ASSERT_EQ(done, std::vector<int>(7, 1));
      }
    });
  }
  for (auto& lane : lanes) lane.join();
  team.call_all();
  helper.join();
}

// The helper is called while it does an item, and the other items are left to their owner.
TEST(LaneTeamTest, AHelperLeavesBetweenTwoItemsWhenALaneIsCalled) {
  LaneTeam team(2, kEverything);
  LaneSeat seat(team, 0);
  seat.begin_pass(kMuch);
  std::atomic<bool> has_left{false};
  const auto calls = team.call_count();
  std::thread helper([&] {
    team.help(1, calls);
    has_left = true;
  });
  while (team.idle_count() < 1) std::this_thread::yield();
  std::atomic<int> by_helper{0};
  seat.share({.count = 100, .work = 1}, [&](std::size_t, std::size_t member) {
    if (member == 1) {
      ++by_helper;
      team.call();
    } else {
      while (by_helper == 0 || !has_left) std::this_thread::yield();
    }
  });
  EXPECT_EQ(by_helper, 1);
  EXPECT_EQ(team.idle_count(), 0U);
  helper.join();
}

// Where the first item of each lane waits for that of another.
std::vector<std::size_t> first_items(const LaneTeam& team, LaneSeat& seat, std::size_t count) {
  std::vector<std::size_t> firsts(team.size(), SIZE_MAX);
  std::atomic<std::size_t> begun{0};
  seat.share({.count = count, .work = 1}, [&](std::size_t index, std::size_t member) {
    if (firsts[member] != SIZE_MAX) return;
    firsts[member] = index;
    ++begun;
    while (begun < 2) std::this_thread::yield();
  });
  return firsts;
}

TEST(LaneTeamTest, ALaneBeginsWithItsOwnShare) {
  LaneTeam team(2, kEverything);
  const IdleLanes idle(team);
  LaneSeat seat(team, 0);
  seat.begin_pass(kMuch);
  for (int round = 0; round < 20; ++round) {
    while (team.sleeper_count() < 1) std::this_thread::yield();
    ASSERT_EQ(first_items(team, seat, 4), (std::vector<std::size_t>{0, 2})) << round;
  }
}

// Two of three lanes are wanted: each has half of the items. The third one sleeps on, unless it was
// still on its way to sleep.
TEST(LaneTeamTest, ItemsAreDividedAmongTheLanesThatAreWanted) {
  LaneTeam team(3, {.pass = 100, .share = 0});
  const IdleLanes idle(team);
  LaneSeat seat(team, 0);
  seat.begin_pass(200);
  int compared = 0;
  for (int round = 0; round < 20; ++round) {
    while (team.sleeper_count() < 2) std::this_thread::yield();
    const auto firsts = first_items(team, seat, 12);
    if (firsts[2] != SIZE_MAX) continue;
    ASSERT_EQ(firsts, (std::vector<std::size_t>{0, 6, SIZE_MAX})) << round;
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

TEST(LaneTeamTest, WithNothingSharedALaneIsAlwaysAlone) {
  LaneTeam team(2, kNothingShared);
  const IdleLanes idle(team);
  LaneSeat seat(team, 0);
  seat.begin_pass(kMoreThanAnyWork - 1);
  EXPECT_EQ(seat.lanes_now(kMoreThanAnyWork - 1), 1U);
}

// They fall asleep from the last one on, so the first to sleep would be the wrong one.
TEST(LaneTeamTest, ACallWakesTheSleeperOfTheLowestNumber) {
  constexpr std::size_t kLanes = 3;
  LaneTeam team(kLanes, kEverything);
  const auto calls = team.call_count();
  std::vector<std::atomic<bool>> has_left(kLanes);
  std::vector<std::thread> lanes;
  for (std::size_t lane = kLanes; lane-- > 0;) {
    lanes.emplace_back([&, lane] {
      team.help(lane, calls);
      has_left[lane] = true;
    });
    while (team.sleeper_count() + lane < kLanes) std::this_thread::yield();
  }
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    team.call();
    while (!has_left[lane] && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    EXPECT_TRUE(has_left[lane]) << lane;
  }
  team.call_all();
  for (auto& lane : lanes) lane.join();
}

// The second call must not take the lane for asleep that the first one has woken.
TEST(LaneTeamTest, TwoCallsAtOnceWakeTwoLanes) {
  for (int round = 0; round < 20 && !HasFailure(); ++round) {
    LaneTeam team(3, kEverything);
    std::atomic<std::size_t> left_count{0};
    std::vector<std::thread> lanes;
    for (std::size_t lane = 0; lane < 3; ++lane) {
      lanes.emplace_back([&, lane, calls = team.call_count()] {
        team.help(lane, calls);
        ++left_count;
      });
    }
    while (team.sleeper_count() < 3) std::this_thread::yield();
    team.call();
    team.call();
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (left_count < 2 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    EXPECT_GE(left_count, 2U);
    team.call_all();
    for (auto& lane : lanes) lane.join();
  }
}

TEST(LaneTeamTest, ACallThatCameBeforeIsNotSleptThrough) {
  LaneTeam team(2, kEverything);
  const auto calls = team.call_count();
  team.call();
  team.help(0, calls);  // returns
  EXPECT_EQ(team.idle_count(), 0U);
}

TEST(LaneTeamTest, LittleWorkIsNotShared) {
  LaneTeam team(3, {.pass = 100, .share = 10});
  const IdleLanes idle(team);
  LaneSeat seat(team, 0);
  EXPECT_EQ(seat.lanes_now(1000), 1U) << "before a pass";
  seat.begin_pass(199);  // enough for one lane alone
  EXPECT_EQ(seat.lanes_now(199), 1U);
  seat.begin_pass(200);
  EXPECT_EQ(seat.lanes_now(9), 1U);
  EXPECT_EQ(seat.lanes_now(10), 2U);
  seat.begin_pass(1'000'000);
  EXPECT_EQ(seat.lanes_now(10), 3U);
  EXPECT_EQ(LaneSeat().lanes_now(1'000'000), 1U);
}

TEST(LaneTeamTest, WhatAnItemThrowsIsThrownWhenAllAreDone) {
  LaneTeam team(3, kEverything);
  const IdleLanes idle(team);
  LaneSeat seat(team, 0);
  seat.begin_pass(kMuch);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> at_work{0};
    const auto share_with_fault = [&] {
      seat.share({.count = 100, .work = 1}, [&](std::size_t index, std::size_t) {
        ++at_work;
        std::this_thread::yield();  // so that others are at work when one throws
        --at_work;
        if (index == 7) throw std::bad_alloc();
      });
    };
    EXPECT_THROW(share_with_fault(), std::bad_alloc);
    ASSERT_EQ(at_work, 0);
    std::atomic<int> sum{0};
    seat.share({.count = 100, .work = 1},
               [&](std::size_t index, std::size_t) { sum += static_cast<int>(index); });
    ASSERT_EQ(sum, 4950);
  }
}

}  // namespace
}  // namespace muster::engine

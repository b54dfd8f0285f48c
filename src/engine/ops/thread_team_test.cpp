#include "engine/ops/thread_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace muster::engine {
namespace {

TEST(ThreadTeamTest, EveryItemIsDoneOnceAndBeforeShareReturns) {
  for (const std::size_t size : {1U, 2U, 3U, 7U}) {
    ThreadTeam team(size);
    EXPECT_EQ(team.size(), size);
    for (int round = 0; round < 2000; ++round) {
      const std::size_t count = static_cast<std::size_t>(round) % 13;
      std::vector<int> done(count);  // a race would lose an increment, or be seen by sanitizers
      team.share(count, [&](std::size_t index, std::size_t member) {
        ASSERT_LT(member, size);
        ++done[index];
      });
      ASSERT_EQ(done, std::vector<int>(count, 1)) << "round " << round;
    }
  }
}

// Who sleeps looks at the shares when all are there.
void wait_until_all_sleep(const ThreadTeam& team) {
  while (team.sleeper_count() + 1 < team.size()) std::this_thread::yield();
}

// What a member did in one piece of work it does in the next, and finds it in its core's cache.
TEST(ThreadTeamTest, AMemberBeginsWithItsOwnShare) {
  ThreadTeam team(3);
  for (int round = 0; round < 20; ++round) {
    wait_until_all_sleep(team);
    std::vector<std::size_t> firsts(3, SIZE_MAX);
    std::atomic<std::size_t> begun{0};
    team.share(12, [&](std::size_t index, std::size_t member) {
      if (firsts[member] != SIZE_MAX) return;
      firsts[member] = index;
      ++begun;
      while (begun < 3) std::this_thread::yield();
    });
    ASSERT_EQ(firsts, (std::vector<std::size_t>{0, 4, 8})) << "round " << round;
  }
}

// The caller's first item ends when all others are done, and the helper's begins with it.
TEST(ThreadTeamTest, WhoHasDoneItsShareTakesTheLastOfAnothers) {
  ThreadTeam team(2);
  wait_until_all_sleep(team);
  std::vector<std::size_t> order;  // of the helper
  std::atomic<bool> has_begun{false};
  std::atomic<std::size_t> helped{0};
  team.share(8, [&](std::size_t index, std::size_t member) {
    if (member == 0) {
      has_begun = true;
      while (helped < 7) std::this_thread::yield();
    } else {
      while (!has_begun) std::this_thread::yield();
      order.push_back(index);
      ++helped;
    }
  });
  EXPECT_EQ(order, (std::vector<std::size_t>{4, 5, 6, 7, 3, 2, 1}));
}

// A helper may look for the end just before it comes.
TEST(ThreadTeamTest, AnEndIsNotSleptThrough) {
  for (int round = 0; round < 200; ++round) {
    ThreadTeam team(2);
    team.share(2, [](std::size_t, std::size_t) {});
  }
}

TEST(ThreadTeamTest, ASleepingTeamWakes) {
  std::atomic<int> started{0};
  ThreadTeam team(3, [&](std::size_t) { ++started; });
  for (int round = 0; round < 20; ++round) {
    while (team.sleeper_count() < 2) std::this_thread::yield();
    std::atomic<int> sum{0};
    team.share(100, [&](std::size_t index, std::size_t) { sum += static_cast<int>(index); });
    ASSERT_EQ(sum, 4950);
  }
  EXPECT_EQ(started, 2);
}

// In a helper an exception would end the program, and in the caller leave the others at work that
// is gone.
TEST(ThreadTeamTest, WhatAnItemThrowsIsThrownWhenAllAreDone) {
  ThreadTeam team(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<int> done(100);
    auto with_fault = [&](std::size_t index, std::size_t) {
      if (index == 7) throw std::bad_alloc();
      ++done[index];
    };
    EXPECT_THROW(team.share(done.size(), with_fault), std::bad_alloc);
    for (std::size_t i = 0; i < done.size(); ++i) ASSERT_EQ(done[i], i == 7 ? 0 : 1) << i;
    auto fault = [](std::size_t, std::size_t) { throw std::bad_alloc(); };
    EXPECT_THROW(team.share(100, fault), std::bad_alloc);
    std::atomic<int> sum{0};
    team.share(100, [&](std::size_t index, std::size_t) { sum += static_cast<int>(index); });
    ASSERT_EQ(sum, 4950);
  }
}

TEST(ThreadTeamTest, AloneItThrowsWhatItsItemThrows) {
  ThreadTeam team(1);
  auto fault = [](std::size_t, std::size_t) { throw std::bad_alloc(); };
  EXPECT_THROW(team.share(3, fault), std::bad_alloc);
}

/// What a helper calls first, of which there can be so many copies.
struct FewCopies {
  std::shared_ptr<int> left;

  explicit FewCopies(std::shared_ptr<int> count) : left(std::move(count)) {}
  FewCopies(const FewCopies& other) : left(other.left) {
    if (*left == 0) throw std::bad_alloc();
    --*left;
  }
  FewCopies& operator=(const FewCopies&) = delete;
  void operator()(std::size_t /*member*/) const {}
};

// The first helper runs and the second cannot be started, as where the system has no more threads.
TEST(ThreadTeamTest, AHelperThatCannotBeStartedIsAnExceptionAndLeavesNone) {
  const auto left = std::make_shared<int>(8);
  std::function<void(std::size_t)> on_start = FewCopies(left);
  *left = 1;
  EXPECT_THROW(ThreadTeam(3, std::move(on_start)), std::bad_alloc);
}

TEST(ThreadTeamTest, ItEndsWithoutEverHavingWorked) { ThreadTeam team(4); }

}  // namespace
}  // namespace muster::engine

#include "coordinator/fleet_rules.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster {
namespace {

TEST(FateOfBatch, OnlyWhatRanWhenAWorkerFailedIsSuspected) {
  EXPECT_EQ(fate_of_batch(WorkerEnd::Innocent, true, false, true), BatchFate::Again);
  EXPECT_EQ(fate_of_batch(WorkerEnd::Died, false, false, true), BatchFate::Again);
  EXPECT_EQ(fate_of_batch(WorkerEnd::Silent, false, false, true), BatchFate::Again);
  EXPECT_EQ(fate_of_batch(WorkerEnd::Died, true, false, true), BatchFate::Apart);
}

TEST(FateOfBatch, AHangIsTriedElsewhereOnceAndThenTakenApart) {
  EXPECT_EQ(fate_of_batch(WorkerEnd::Silent, true, false, true), BatchFate::Elsewhere);
  EXPECT_EQ(fate_of_batch(WorkerEnd::Silent, true, true, true), BatchFate::Apart);
  EXPECT_EQ(fate_of_batch(WorkerEnd::Silent, true, false, false), BatchFate::Apart);
}

TEST(FeedInTurns, GivesOneBatchADeviceBeforeAnyGetsASecond) {
  std::vector<std::size_t> in_flight{0, 1, 0};
  const std::vector<std::size_t> slots{2, 2, 0};
  std::vector<std::size_t> given;
  std::size_t waiting = 10;
  feed_in_turns(
      3, [&](std::size_t i) { return in_flight[i]; }, [&](std::size_t i) { return slots[i]; },
      [&] { return waiting == 0; },
      [&](std::size_t i) {
        ++in_flight[i];
        --waiting;
        given.push_back(i);
      });
  EXPECT_EQ(given, (std::vector<std::size_t>{0, 0, 1}));
  EXPECT_EQ(waiting, 7U);
}

TEST(FeedInTurns, EndsWhenNothingWaits) {
  std::size_t waiting = 1;
  feed_in_turns(
      2, [](std::size_t) { return std::size_t{0}; }, [](std::size_t) { return std::size_t{9}; },
      [&] { return waiting == 0; }, [&](std::size_t) { --waiting; });
  EXPECT_EQ(waiting, 0U);
}

}  // namespace
}  // namespace muster

#include "standin/stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <vector>

namespace muster::standin {
namespace {

// No test runs so long: what is not waited for does not begin.
constexpr std::chrono::hours kNever(10);

TEST(Stream, NothingBeginsBeforeSomebodyWaits) {
  std::atomic<int> begun = 0;
  Stream stream(kNever, [] {});
  const auto first = stream.push([&] { ++begun; });
  const auto second = stream.push([&] { ++begun; });
  EXPECT_EQ(first, 1U);
  EXPECT_EQ(second, 2U);
  Stream eager(std::chrono::microseconds(0), [] {});  // in whose time the other one might begin
  for (int i = 0; i < 100; ++i) eager.wait_for(eager.push([] {}));
  EXPECT_EQ(begun, 0);
  EXPECT_EQ(stream.done(), 0U);
  stream.wait_for(first);
  EXPECT_GE(begun, 1);
  stream.wait_for(second);
  EXPECT_EQ(begun, 2);
  EXPECT_EQ(stream.done(), 2U);
}

TEST(Stream, WorkIsDoneInOrder) {
  std::vector<int> order;
  Stream stream(std::chrono::microseconds(0), [] {});
  for (int i = 0; i < 100; ++i) stream.push([&order, i] { order.push_back(i); });
  stream.wait_for(stream.last());
  ASSERT_EQ(order.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(Stream, AfterItsDelayWorkBeginsByItself) {
  std::atomic<bool> is_begun = false;
  Stream stream(std::chrono::microseconds(1), [] {});
  stream.push([&] {
    is_begun = true;
    is_begun.notify_all();
  });
  is_begun.wait(false);
  EXPECT_TRUE(is_begun);
}

TEST(Stream, AFullQueueIsWorkedOffBeforeMoreIsTaken) {
  std::atomic<std::size_t> done = 0;
  Stream stream(kNever, [] {});
  for (std::size_t i = 0; i < 2 * Stream::kQueueMost; ++i) {
    stream.wait_for_room();
    stream.push([&] { ++done; });
  }
  EXPECT_GE(done, Stream::kQueueMost - 1);
  stream.wait_for(stream.last());
  EXPECT_EQ(done, 2 * Stream::kQueueMost);
}

TEST(Stream, TheEndDoesWhatWasPushed) {
  std::atomic<int> done = 0;
  {
    Stream stream(kNever, [] {});
    stream.push([&] { ++done; });
  }
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace muster::standin

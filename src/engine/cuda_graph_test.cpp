// What a capture that fails leaves behind, by fakes of torch's functions: no GPU is needed, and the
// stand-in has no graphs.

#include "engine/cuda_graph.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/gpu_fixture.h"

namespace muster::engine {
namespace {

/// What the fakes do, and what they were told.
struct FakeGraph {
  bool loses_capture = false;        // the end of the capture fails, and no allocator is told
  bool lacks_memory_at_end = false;  // the driver's, for what would be replayed
  bool has_ended = false;
  int destroyed_count = 0;
};
FakeGraph fake;

/// Captures and destructions in flight: one at most.
std::atomic<int> in_flight = 0;
std::atomic<bool> has_overlapped = false;

void enter() {
  if (in_flight.fetch_add(1) > 0) has_overlapped = true;
}
void leave() { in_flight.fetch_sub(1); }

void fill(CudaGraphCalls& calls) {
  fake = {};
  in_flight = 0;
  has_overlapped = false;
  calls.construct = [](void*, bool) {};
  calls.destroy = [](void*) {
    enter();
    ++fake.destroyed_count;
    leave();
  };
  calls.capture_begin = [](void*, CudaGraph::Pool, int) {
    enter();
    fake.has_ended = false;
  };
  calls.capture_end = [](void*) {
    leave();
    TORCH_CHECK(!fake.loses_capture, "CUDA error: operation failed due to a previous error");
    fake.has_ended = true;
    TORCH_CHECK(!fake.lacks_memory_at_end, "CUDA error: out of memory");
  };
  calls.pool = [](void*) -> CudaGraph::Pool {
    TORCH_CHECK(fake.has_ended, "no capture has ended");
    return {};
  };
}

/// The error of a capture; empty: there was none.
std::string error_of(CudaGraphCalls& calls, const std::function<void()>& work) {
  try {
    const CudaGraph graph(calls, {}, work);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return {};
}

/// Work in whose middle another thread has its turns.
void let_others_run() {
  for (int i = 0; i < 20; ++i) std::this_thread::yield();
}

TEST(CudaGraph, OneThatFindsNoMemoryAtItsEndMayBeCapturedLater) {
  CudaGraphCalls calls;
  fill(calls);
  fake.lacks_memory_at_end = true;
  EXPECT_EQ(error_of(calls, [] {}), "CUDA error: out of memory");
  EXPECT_FALSE(calls.is_broken);
  EXPECT_EQ(fake.destroyed_count, 1) << "its memory is given back";
  fake.lacks_memory_at_end = false;
  EXPECT_EQ(error_of(calls, [] {}), "");
}

TEST(CudaGraph, WhatWorkRanIntoIsToldAlsoWhereTheEndFails) {
  CudaGraphCalls calls;
  fill(calls);
  fake.lacks_memory_at_end = true;
  const auto work = [] { TORCH_CHECK(false, "work lacks memory"); };
  EXPECT_EQ(error_of(calls, work), "work lacks memory");
  EXPECT_FALSE(calls.is_broken);
  EXPECT_EQ(fake.destroyed_count, 1);
}

TEST(CudaGraph, ACaptureThatTheAllocatorTakesForOpenIsTheLast) {
  CudaGraphCalls calls;
  fill(calls);
  fake.loses_capture = true;
  EXPECT_EQ(error_of(calls, [] {}), "CUDA error: operation failed due to a previous error");
  EXPECT_TRUE(calls.is_broken);
  EXPECT_EQ(fake.destroyed_count, 0) << "the allocator has a pointer to it";
}

TEST(CudaGraph, ACaptureThatCannotBeBegunIsTheLast) {
  CudaGraphCalls calls;
  fill(calls);
  calls.capture_begin = [](void*, CudaGraph::Pool, int) {
    TORCH_CHECK(false, "CUDA error: operation not supported");
  };
  EXPECT_EQ(error_of(calls, [] {}), "CUDA error: operation not supported");
  EXPECT_TRUE(calls.is_broken);
}

// Torch's random generator keeps a set of the graphs, without a lock. Without ours, one of these
// captures would meet another: each lets other threads run in its middle.
TEST(CudaGraph, CapturesOfTwoThreadsTakeTurns) {
  CudaGraphCalls calls;
  fill(calls);
  std::latch both_run(2);
  const auto capture_many = [&] {
    std::string errors;
    both_run.arrive_and_wait();
    for (int i = 0; i < 200; ++i) errors += error_of(calls, let_others_run);
    return errors;
  };
  auto other = std::async(std::launch::async, capture_many);
  EXPECT_EQ(capture_many(), "");
  EXPECT_EQ(other.get(), "");
  EXPECT_FALSE(has_overlapped);
  EXPECT_EQ(fake.destroyed_count, 400);
}

TEST(CudaGraph, NoneIsDestroyedWhileAnotherIsCaptured) {
  CudaGraphCalls calls;
  fill(calls);
  std::vector<std::unique_ptr<CudaGraph>> graphs;
  for (int i = 0; i < 200; ++i) {
    graphs.push_back(std::make_unique<CudaGraph>(calls, CudaGraph::Pool{}, [] {}));
  }
  std::latch both_run(2);
  std::atomic<bool> is_over = false;
  auto destroyed = std::async(std::launch::async, [&] {
    both_run.arrive_and_wait();
    for (auto& graph : graphs) {
      graph.reset();
      std::this_thread::yield();
    }
    is_over = true;
  });
  both_run.arrive_and_wait();
  int captured_count = 0;
  for (; !is_over; ++captured_count) {
    EXPECT_EQ(error_of(calls, let_others_run), "");
    std::this_thread::yield();  // a lock is not fair
  }
  destroyed.get();
  EXPECT_FALSE(has_overlapped);
  EXPECT_EQ(fake.destroyed_count, 200 + captured_count);
}

using GpuGraphTest = OnGpu<testing::Test>;

TEST_F(GpuGraphTest, MemoryIsGivenBackWhenTheCaptureIsOver) {
  CudaGraphCalls calls;
  fill(calls);
  std::future<void> released;
  bool is_waiting = false;
  const CudaGraph graph(calls, {}, [&] {
    released = std::async(std::launch::async,
                          [] { release_cached_memory(torch_device(gpu_under_test())); });
    is_waiting = released.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout;
  });
  EXPECT_TRUE(is_waiting);
  released.get();
}

}  // namespace
}  // namespace muster::engine

// What a capture that fails leaves behind, by fakes of torch's functions: no GPU is needed, and the
// stand-in has no graphs.

#include "engine/cuda_graph.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>

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

void fill(CudaGraphCalls& calls) {
  fake = {};
  calls.construct = [](void*, bool) {};
  calls.destroy = [](void*) { ++fake.destroyed_count; };
  calls.capture_begin = [](void*, CudaGraph::Pool, int) { fake.has_ended = false; };
  calls.capture_end = [](void*) {
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

// Torch's random generator keeps a list of the graphs, without a lock.
TEST(CudaGraph, CapturesOfTwoThreadsTakeTurns) {
  CudaGraphCalls calls;
  fill(calls);
  std::future<std::string> second;
  bool is_waiting = false;
  EXPECT_EQ(error_of(calls,
                     [&] {
                       second = std::async(std::launch::async,
                                           [&calls] { return error_of(calls, [] {}); });
                       is_waiting = second.wait_for(std::chrono::milliseconds(50)) ==
                                    std::future_status::timeout;
                     }),
            "");
  EXPECT_TRUE(is_waiting);
  EXPECT_EQ(second.get(), "");
}

TEST(CudaGraph, NoneIsDestroyedWhileAnotherIsCaptured) {
  CudaGraphCalls calls;
  fill(calls);
  auto first = std::make_unique<CudaGraph>(calls, CudaGraph::Pool{}, [] {});
  std::future<void> destroyed;
  bool is_waiting = false;
  const CudaGraph second(calls, {}, [&] {
    destroyed = std::async(std::launch::async, [&first] { first.reset(); });
    is_waiting = destroyed.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout;
  });
  EXPECT_TRUE(is_waiting);
  destroyed.get();
  EXPECT_EQ(fake.destroyed_count, 1);
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

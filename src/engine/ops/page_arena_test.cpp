#include "engine/ops/page_arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "engine/memory_use.h"
#include "engine/ops/panel_weight.h"

namespace muster::engine {
namespace {

TEST(PageArenaTest, ArraysStandOneBehindTheOtherOnLines) {
  PageArena arena;
  auto* const first = arena.take(100);
  auto* const second = arena.take(1);
  auto* const none = arena.take(0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % PageArena::kPage, 0U);
  EXPECT_EQ(second, first + 128);
  EXPECT_EQ(none, first + 192) << "of nothing, too, each has its own place";
  EXPECT_EQ(arena.take(8), first + 256);
  EXPECT_EQ(arena.chunk_count(), 1U);
}

// 40 + 40 MiB are more than a chunk; 100 MiB have one of their own.
TEST(PageArenaTest, AChunkThatIsFreeGoesBack) {
  PageArena arena;
  constexpr std::size_t kSize = std::size_t{40} << 20U;
  constexpr std::size_t kLarge = std::size_t{100} << 20U;
  auto* const first = arena.take(kSize);
  auto* const beside = arena.take(64);
  auto* const second = arena.take(kSize);
  auto* const large = arena.take(kLarge);
  EXPECT_EQ(arena.chunk_count(), 3U);
  std::memset(large + kLarge - 64, 1, 64);
  arena.give_back(first, kSize);
  EXPECT_EQ(arena.chunk_count(), 3U) << "it holds another";
  std::memset(beside, 1, 64);
  arena.give_back(beside, 64);
  EXPECT_EQ(arena.chunk_count(), 2U);
  arena.give_back(large, kLarge);
  arena.give_back(second, kSize);
  EXPECT_EQ(arena.chunk_count(), 0U);
  EXPECT_EQ(arena.take(64) == nullptr, false);
}

TEST(PageArenaTest, WhatCannotBeHadThrows) {
  PageArena arena;
  EXPECT_THROW(arena.take(std::size_t{1} << 60U), std::bad_alloc);
  EXPECT_EQ(arena.chunk_count(), 0U);
}

TEST(PageArenaTest, ThreadsTakeAndGiveBackAtOnce) {
  PageArena arena;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&arena, t] {
      for (std::size_t i = 1; i <= 200; ++i) {
        const std::size_t size = i * 1000;
        auto* const memory = arena.take(size);
        std::memset(memory, t, size);
        ASSERT_EQ(memory[size - 1], std::byte(t));
        arena.give_back(memory, size);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(arena.chunk_count(), 0U);
}

TEST(PageArenaTest, WeightsAreInItAndCounted) {
  auto& arena = PageArena::of_weights();
  const auto chunks = arena.chunk_count();
  const auto before = memory_use().live_bytes;
  {
    const PanelWeight weight(WeightFormat::Q8_0, 64, 96);
    EXPECT_EQ(memory_use().live_bytes - before, weight.bytes());
    EXPECT_EQ(arena.chunk_count(), 1U);
  }
  EXPECT_EQ(memory_use().live_bytes, before);
  EXPECT_EQ(arena.chunk_count(), chunks);
}

}  // namespace
}  // namespace muster::engine

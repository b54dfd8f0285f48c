#include "scheduler/block_cache.h"

#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <vector>

namespace muster {
namespace {

using Blocks = std::vector<std::uint32_t>;
using Ids = std::vector<std::uint32_t>;

BlockCache small() { return BlockCache({.block_tokens = 2, .block_count = 4}); }

TEST(PrefixKeyTest, AKeyIsOfAllIdsUpToItsBlocksEnd) {
  const auto keys = prefix_keys(7, Ids{1, 2, 3, 4, 5}, 2);
  ASSERT_EQ(keys.size(), 2U) << "the last block is not full";
  EXPECT_EQ(keys[0], next_prefix_key(prefix_root(7), Ids{1, 2}));
  EXPECT_EQ(keys[1], next_prefix_key(keys[0], Ids{3, 4}));
  EXPECT_EQ(prefix_keys(7, Ids{1, 2, 9, 9}, 2)[0], keys[0]);
  EXPECT_NE(prefix_keys(7, Ids{9, 2, 3, 4}, 2)[1], keys[1]);
  EXPECT_NE(prefix_keys(8, Ids{1, 2}, 2)[0], keys[0]);
}

TEST(BlockCacheTest, TheLowestFreeBlockIsTakenFirst) {
  auto cache = small();
  EXPECT_EQ(cache.take(), 0U);
  EXPECT_EQ(cache.take(), 1U);
  cache.release(Blocks{0});
  EXPECT_EQ(cache.take(), 0U);
  EXPECT_EQ(cache.available_count(), 2U);
}

TEST(BlockCacheTest, OnlyWhatIsKeptIsFoundAndOnlyFromTheStart) {
  auto cache = small();
  const auto first = cache.take();
  const auto second = cache.take();
  EXPECT_EQ(cache.find(0, Ids{1, 2, 3, 4}), Blocks{});
  EXPECT_EQ(cache.keep(first, 0, std::nullopt, Ids{1, 2}), first);
  EXPECT_EQ(cache.keep(second, 0, first, Ids{3, 4}), second);
  EXPECT_EQ(cache.find(0, Ids{1, 2, 3, 4, 5, 6}), (Blocks{first, second}));
  EXPECT_EQ(cache.find(0, Ids{1, 2, 3}), Blocks{first});
  EXPECT_EQ(cache.find(0, Ids{3, 4}), Blocks{});
  EXPECT_EQ(cache.find(1, Ids{1, 2}), Blocks{}) << "another scope";
}

TEST(BlockCacheTest, AnIdleBlockIsFoundUntilItIsEvictedTheLongestIdleAndDeepestFirst) {
  auto cache = small();
  const auto put = [&](std::uint32_t id) {
    Blocks blocks{cache.take(), cache.take()};
    cache.keep(blocks[0], 0, std::nullopt, Ids{id, id});
    cache.keep(blocks[1], 0, blocks[0], Ids{id, id});
    cache.release(blocks);
  };
  put(1);
  put(2);
  EXPECT_EQ(cache.available_count(), 4U);
  cache.share(Blocks{0, 1});
  EXPECT_EQ(cache.available_count(), 2U);
  cache.release(Blocks{0, 1});
  // 2 was idle before 1 now, its second block before its first.
  EXPECT_EQ(cache.take(), 3U);
  EXPECT_EQ(cache.find(0, Ids{2, 2, 2, 2}), Blocks{2});
  EXPECT_EQ(cache.take(), 2U);
  EXPECT_EQ(cache.find(0, Ids{2, 2}), Blocks{});
  EXPECT_EQ(cache.find(0, Ids{1, 1, 1, 1}), (Blocks{0, 1}));
  EXPECT_EQ(cache.take(), 1U);
  EXPECT_EQ(cache.take(), 0U);
  EXPECT_EQ(cache.available_count(), 0U);
}

TEST(BlockCacheTest, AHeldBlockIsNotEvicted) {
  auto cache = small();
  const auto block = cache.take();
  cache.keep(block, 0, std::nullopt, Ids{1, 2});
  cache.share(Blocks{block});
  cache.release(Blocks{block});
  EXPECT_EQ(cache.holder_count(block), 1U);
  EXPECT_EQ(cache.available_count(), 3U);
  for (int i = 0; i < 3; ++i) EXPECT_NE(cache.take(), block);
  EXPECT_EQ(cache.find(0, Ids{1, 2}), Blocks{block});
}

TEST(BlockCacheTest, OfTwoEqualBlocksOneIsLeft) {
  auto cache = small();
  const auto one = cache.take();
  const auto other = cache.take();
  EXPECT_EQ(cache.keep(one, 0, std::nullopt, Ids{1, 2}), one);
  EXPECT_EQ(cache.keep(other, 0, std::nullopt, Ids{1, 2}), one);
  EXPECT_EQ(cache.holder_count(one), 2U);
  EXPECT_EQ(cache.available_count(), 3U);
  EXPECT_EQ(cache.take(), other) << "it is free again";
}

// All keys the same: what is found is still right, and a block without a key of its own is free
// when it is let go.
TEST(BlockCacheTest, WhereKeysClashIdsDecide) {
  BlockCache cache({.block_tokens = 2,
                    .block_count = 4,
                    .key_of = [](const PrefixKey&, std::span<const std::uint32_t>) {
                      return PrefixKey{.high = 1, .low = 1};
                    }});
  const auto one = cache.take();
  const auto other = cache.take();
  EXPECT_EQ(cache.keep(one, 0, std::nullopt, Ids{1, 2}), one);
  EXPECT_EQ(cache.keep(other, 0, std::nullopt, Ids{3, 4}), other);
  EXPECT_TRUE(cache.is_kept(one));
  EXPECT_FALSE(cache.is_kept(other));
  EXPECT_EQ(cache.find(0, Ids{1, 2}), Blocks{one});
  EXPECT_EQ(cache.find(0, Ids{3, 4}), Blocks{});
  EXPECT_EQ(cache.find(0, Ids{1, 2, 1, 2}), Blocks{one}) << "not behind itself";
  EXPECT_EQ(cache.find(5, Ids{1, 2}), Blocks{});
  cache.release(Blocks{other});
  EXPECT_EQ(cache.take(), other);
}

}  // namespace
}  // namespace muster

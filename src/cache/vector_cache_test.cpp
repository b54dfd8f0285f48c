#include "cache/vector_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "cache/cache_fixture.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<VectorCache> open_cache(CacheOptions options) {
  auto cache = VectorCache::open(options);
  EXPECT_TRUE(cache.has_value());
  return cache ? std::move(*cache) : nullptr;
}

TEST(VectorCache, AHitIsBitwiseWhatWasPut) {
  const auto cache = open_cache({});
  // One block, the last float of the first block, the first of the second, common lengths.
  for (const std::size_t dim : {1u, 44u, 45u, 106u, 107u, 384u, 768u, 1024u, 4096u}) {
    const auto vector = vector_of(dim, dim);
    cache->put(key_of(dim), vector, 0);
    EXPECT_TRUE(is_same(cache->find(key_of(dim), 0), vector)) << dim;
  }
  EXPECT_EQ(cache->status().hit_count, 9);
}

TEST(VectorCache, KeepsTheBitsOfNanAndNegativeZero) {
  const auto cache = open_cache({});
  const std::vector<float> odd{std::bit_cast<float>(0x7FC12345u), -0.0F,
                               std::numeric_limits<float>::denorm_min(),
                               -std::numeric_limits<float>::infinity()};
  cache->put(key_of(1), odd, 0);
  EXPECT_TRUE(is_same(cache->find(key_of(1), 0), odd));
}

TEST(VectorCache, WhatIsNotThereIsAMiss) {
  const auto cache = open_cache({});
  EXPECT_TRUE(cache->find(key_of(1), 0).empty());
  EXPECT_EQ(cache->status().miss_count, 1);
  EXPECT_EQ(cache->status().hit_count, 0);
}

TEST(VectorCache, TheLastPutOfAKeyCounts) {
  const auto cache = open_cache({});
  cache->put(key_of(1), vector_of(1, 384), 0);
  cache->put(key_of(1), vector_of(2, 500), 0);
  EXPECT_TRUE(is_same(cache->find(key_of(1), 0), vector_of(2, 500)));
  EXPECT_EQ(cache->status().entry_count, 1);
  EXPECT_EQ(cache->status().evicted_count, 0);
}

TEST(VectorCache, ThrowsOutTheLeastRecentlyUsed) {
  const auto cache = open_cache({.entries_most = 3});
  for (std::uint64_t i = 1; i <= 3; ++i) cache->put(key_of(i), vector_of(i, 8), 0);
  EXPECT_FALSE(cache->find(key_of(1), 0).empty());  // oldest to newest now: 2 3 1
  cache->put(key_of(4), vector_of(4, 8), 0);
  EXPECT_TRUE(cache->find(key_of(2), 0).empty());
  EXPECT_FALSE(cache->find(key_of(3), 0).empty());  // 1 4 3
  cache->put(key_of(5), vector_of(5, 8), 0);
  EXPECT_TRUE(cache->find(key_of(1), 0).empty());
  EXPECT_FALSE(cache->find(key_of(4), 0).empty());
  EXPECT_EQ(cache->status().entry_count, 3);
  EXPECT_EQ(cache->status().evicted_count, 2);
}

TEST(VectorCache, NeverTakesMoreBytesThanAllowed) {
  constexpr std::uint64_t kSize = 1 << 20;
  const auto cache = open_cache({.size_most = kSize});
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const std::size_t dim = i % 3 == 0 ? 40 : i % 3 == 1 ? 384 : 1024;
    cache->put(key_of(i), vector_of(i, dim), 0);
    ASSERT_LE(cache->status().size, kSize);
    ASSERT_TRUE(is_same(cache->find(key_of(i), 0), vector_of(i, dim)));
  }
  const auto status = cache->status();
  EXPECT_EQ(status.entry_count + status.evicted_count, 2000);
  // 1 + 7 + 17 blocks of 256 bytes a round of three, and at least 90 % of the bytes hold entries.
  EXPECT_GE(status.entry_count, 3 * (kSize * 9 / 10 / (25 * 256)));
}

TEST(VectorCache, ABiggerVectorPushesOutSeveralSmallOnes) {
  const auto cache = open_cache({.size_most = 64 << 10});
  std::uint64_t count = 0;
  while (cache->status().evicted_count == 0) {
    ++count;
    cache->put(key_of(count), vector_of(count, 44), 0);
  }
  cache->put(key_of(1'000'000), vector_of(7, 44 + 9 * 62), 0);  // ten blocks
  EXPECT_EQ(cache->status().evicted_count, 11);
  EXPECT_TRUE(is_same(cache->find(key_of(1'000'000), 0), vector_of(7, 44 + 9 * 62)));
  EXPECT_TRUE(cache->find(key_of(11), 0).empty());
  EXPECT_FALSE(cache->find(key_of(12), 0).empty());
}

TEST(VectorCache, DoesNotKeepAVectorThatIsTooLarge) {
  const auto cache = open_cache({.size_most = 64 << 10});
  cache->put(key_of(1), vector_of(1, 1024), 0);  // 4 KiB, a sixteenth
  cache->put(key_of(2), vector_of(2, 1025), 0);
  cache->put(key_of(3), {}, 0);
  EXPECT_FALSE(cache->find(key_of(1), 0).empty());
  EXPECT_TRUE(cache->find(key_of(2), 0).empty());
  EXPECT_EQ(cache->status().entry_count, 1);
}

TEST(VectorCache, WithoutBytesOrEntriesItIsOff) {
  for (const auto& options : {CacheOptions{.size_most = 0}, CacheOptions{.entries_most = 0},
                              CacheOptions{.size_most = 100}}) {
    const auto cache = open_cache(options);
    cache->put(key_of(1), vector_of(1, 8), 0);
    EXPECT_TRUE(cache->find(key_of(1), 0).empty());
    EXPECT_EQ(cache->status().entry_count, 0);
    cache->clear();
  }
}

TEST(VectorCache, ForgetsWhatIsOlderThanItsTime) {
  const auto cache = open_cache({.ttl = 60s});
  cache->put(key_of(1), vector_of(1, 8), 1000);
  EXPECT_FALSE(cache->find(key_of(1), 1060).empty());
  EXPECT_TRUE(cache->find(key_of(1), 1060.5).empty());
  EXPECT_TRUE(cache->find(key_of(1), 1000).empty()) << "it is gone, not hidden";
  const auto status = cache->status();
  EXPECT_EQ(status.expired_count, 1);
  EXPECT_EQ(status.miss_count, 2);
  EXPECT_EQ(status.entry_count, 0);
}

TEST(VectorCache, WhatAWrongClockPutIntoTheFutureIsTooOldToo) {
  const auto cache = open_cache({.ttl = 60s});
  cache->put(key_of(1), vector_of(1, 8), 5000);
  EXPECT_FALSE(cache->find(key_of(1), 4950).empty());
  EXPECT_TRUE(cache->find(key_of(1), 1000).empty());
}

TEST(VectorCache, ClearForgetsAllAndGoesOn) {
  const auto cache = open_cache({});
  const auto size_of_nothing = cache->status().size;
  for (std::uint64_t i = 0; i < 100; ++i) cache->put(key_of(i), vector_of(i, 384), 0);
  EXPECT_EQ(cache->status().size, size_of_nothing + 100 * 7 * 256);
  cache->clear();
  EXPECT_EQ(cache->status().entry_count, 0);
  EXPECT_EQ(cache->status().size, size_of_nothing);
  EXPECT_TRUE(cache->find(key_of(5), 0).empty());
  cache->put(key_of(5), vector_of(5, 384), 0);
  EXPECT_TRUE(is_same(cache->find(key_of(5), 0), vector_of(5, 384)));
}

TEST(VectorCache, KeysWithTheSameBeginningAreNotMixedUp) {
  const auto cache = open_cache({});
  CacheKey a{}, b{};
  b.back() = std::byte{1};
  cache->put(a, vector_of(1, 8), 0);
  cache->put(b, vector_of(2, 8), 0);
  EXPECT_TRUE(is_same(cache->find(a, 0), vector_of(1, 8)));
  EXPECT_TRUE(is_same(cache->find(b, 0), vector_of(2, 8)));
}

TEST(VectorCache, AgreesWithASlowModelOverRandomUse) {
  constexpr std::size_t kEntries = 50;
  const auto cache = open_cache({.entries_most = kEntries});
  std::vector<std::pair<std::uint64_t, std::uint64_t>> model;  // key, seed; the newest last
  std::uint64_t random = 88172645463325252u;                   // xorshift64, Marsaglia 2003
  for (std::uint64_t step = 0; step < 20'000; ++step) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    const std::uint64_t key = random % 80;
    const auto at = std::find_if(model.begin(), model.end(),
                                 [&](const auto& entry) { return entry.first == key; });
    const bool is_put = random / 80 % 2 == 0;
    auto entry = is_put ? std::pair(key, step) : at != model.end() ? *at : std::pair(key, step);
    if (is_put) {
      cache->put(key_of(key), vector_of(step, step % 300 + 1), 0);
    } else {
      const auto found = cache->find(key_of(key), 0);
      ASSERT_EQ(!found.empty(), at != model.end()) << "step " << step;
      if (found.empty()) continue;
      ASSERT_TRUE(is_same(found, vector_of(at->second, at->second % 300 + 1))) << "step " << step;
    }
    if (at != model.end()) model.erase(at);
    model.push_back(entry);
    if (model.size() > kEntries) model.erase(model.begin());
    ASSERT_EQ(cache->status().entry_count, model.size());
  }
}

}  // namespace
}  // namespace muster

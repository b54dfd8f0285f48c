#include "jobs/decoder_cache.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

// 2 (keys and values) x 4 layers x 2 heads x 64 x 2 bytes = 2,048 bytes a token.
DecoderSpec spec() {
  DecoderSpec spec;
  spec.layer_count = 4;
  spec.kv_head_count = 2;
  spec.head_size = 64;
  return spec;
}

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// Of 8 bits each of 2 x 4 x 2 vectors of 64 bytes has a scale of 4.
TEST(DecoderCache, ATokenTakesWhatItsVectorsAreKeptIn) {
  EXPECT_EQ(token_cache_bytes(spec(), KvCacheDtype::Fp16), 2048U);
  EXPECT_EQ(token_cache_bytes(spec(), KvCacheDtype::Fp32), 4096U);
  EXPECT_EQ(token_cache_bytes(spec(), KvCacheDtype::Int8), 16U * 68);
}

TEST(DecoderCache, IsOf16BitsButInFp32UnlessItIsNamed) {
  for (const auto precision :
       {DecoderPrecision::Own, DecoderPrecision::Bf16, DecoderPrecision::Int8}) {
    EXPECT_EQ(kept_as(KvCacheDtype::Auto, precision), KvCacheDtype::Fp16);
    EXPECT_EQ(kept_as(KvCacheDtype::Fp32, precision), KvCacheDtype::Fp32);
  }
  EXPECT_EQ(kept_as(KvCacheDtype::Auto, DecoderPrecision::Fp32), KvCacheDtype::Fp32);
  EXPECT_EQ(kept_as(KvCacheDtype::Int8, DecoderPrecision::Fp32), KvCacheDtype::Int8);
}

TEST(DecoderCache, HasRoomForFourOfFullLengthWhereMemoryAllowsIt) {
  const auto cache = fit_cache(spec(), KvCacheDtype::Fp16, 8192, {.free_bytes = 16 * kGiB});
  EXPECT_EQ(cache.bytes, 4 * (8192U + 16) * 2048);
  EXPECT_EQ(cache.length_most, 8192U);
}

TEST(DecoderCache, TakesAQuarterOfTheMemoryAtMostAndCutsTheLength) {
  // A quarter of 2 GiB are 262,144 tokens.
  const auto cache = fit_cache(spec(), KvCacheDtype::Fp16, 1'000'000, {.free_bytes = 2 * kGiB});
  EXPECT_EQ(cache.bytes, kGiB / 2);
  EXPECT_EQ(cache.length_most, 262'144U);
  EXPECT_EQ(fit_cache(spec(), KvCacheDtype::Fp16, 1'000'000, {}).length_most, 131'072U)
      << "256 MiB at least";
}

// A quarter of 4 GiB is 1 GiB; beside 3.5 GiB of weights a half is left.
TEST(DecoderCache, LeavesRoomForTheWeights) {
  const WorkerMemory memory{.free_bytes = 4 * kGiB, .other_bytes = 7 * kGiB / 2};
  EXPECT_EQ(fit_cache(spec(), KvCacheDtype::Fp16, 1'000'000, memory).bytes, kGiB / 2);
  const WorkerMemory full{.free_bytes = kGiB, .other_bytes = 2 * kGiB};
  EXPECT_EQ(fit_cache(spec(), KvCacheDtype::Fp16, 1'000'000, full).bytes, kGiB / 4);
}

// 3 MiB are 1,536 tokens: 96 blocks.
TEST(DecoderCache, IsAsLargeAsIsAsked) {
  const auto large = cache_of(spec(), KvCacheDtype::Fp16, 1024, 3U << 20);
  EXPECT_EQ(large.bytes, 3U << 20);
  EXPECT_EQ(large.length_most, 1024U);
  EXPECT_EQ(cache_of(spec(), KvCacheDtype::Fp16, 8192, 3U << 20).length_most, 1536U);
}

TEST(DecoderCache, AnInterruptedRunGoesOnWithItsLengthWhateverIsFree) {
  const auto cache = cache_for(spec(), KvCacheDtype::Fp16, 262'144, {});
  EXPECT_EQ(cache.length_most, 262'144U);
  EXPECT_EQ(cache.bytes, (262'144U + 16) * 2048);
  EXPECT_EQ(cache_for(spec(), KvCacheDtype::Fp16, 8192, {.free_bytes = 16 * kGiB}).bytes,
            4 * (8192U + 16) * 2048);
}

}  // namespace
}  // namespace muster

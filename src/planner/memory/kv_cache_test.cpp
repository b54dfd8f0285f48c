#include "planner/memory/kv_cache.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace muster {
namespace {

LayerShape attention(std::uint32_t heads, std::uint32_t kv_heads, std::uint32_t head_size) {
  LayerShape layer;
  layer.head_count = heads;
  layer.kv_head_count = kv_heads;
  layer.head_size = head_size;
  layer.value_head_size = head_size;
  return layer;
}

// One vector of a cache, value by value: a new block begins at each `values`-th one.
std::uint64_t enumerate_vector(std::uint64_t size, const CacheFormat& format) {
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < size; ++i) {
    if (i % format.values == 0) bytes += format.bytes;
  }
  return bytes + format.vector_bytes;
}

// Keys and values as a runtime would write them: sequence by sequence, token by token, head by
// head; a block of tokens is allocated when its first token comes.
std::uint64_t enumerate(const LayerShape& layer, const CacheDemand& demand) {
  const std::uint64_t kv_heads = layer.kv_head_count >= demand.tensor_parallel
                                     ? layer.kv_head_count / demand.tensor_parallel
                                     : 1;
  std::uint64_t kept = demand.tokens;
  const bool slides = layer.attention == AttentionKind::SlidingWindow && demand.keeps_window_only;
  if (slides && kept > layer.window) kept = layer.window;
  std::uint64_t bytes = 0;
  for (std::uint64_t sequence = 0; sequence < demand.sequences; ++sequence) {
    for (std::uint64_t token = 0; token < kept; token += demand.block) {
      for (std::uint64_t place = 0; place < demand.block; ++place) {
        if (layer.attention == AttentionKind::Latent) {
          bytes += enumerate_vector(layer.latent_size + layer.rope_size, demand.format);
          continue;
        }
        for (std::uint64_t head = 0; head < kv_heads; ++head) {
          bytes += enumerate_vector(layer.head_size, demand.format);        // key
          bytes += enumerate_vector(layer.value_head_size, demand.format);  // value
        }
      }
    }
  }
  return bytes;
}

TEST(KvCache, IsWhatAnEnumerationOfTokensAndHeadsGives) {
  std::mt19937 random(20'261'121);
  const auto pick = [&](std::uint32_t low, std::uint32_t high) {
    return std::uniform_int_distribution<std::uint32_t>(low, high)(random);
  };
  const char* formats[] = {"fp32", "fp16", "bf16", "int8", "fp8",
                           "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"};
  for (int round = 0; round < 500; ++round) {
    const std::uint32_t kv_heads = 1U << pick(0, 3);
    auto layer = attention(kv_heads * pick(1, 4), kv_heads, pick(1, 80));
    if (pick(0, 3) == 0) layer.value_head_size = pick(1, 80);
    const auto kind = pick(0, 2);
    if (kind == 1) {
      layer.attention = AttentionKind::SlidingWindow;
      layer.window = pick(1, 40);
    } else if (kind == 2) {
      layer.attention = AttentionKind::Latent;
      layer.latent_size = pick(1, 70);
      layer.rope_size = pick(0, 40);
    }
    const CacheDemand demand{.sequences = pick(1, 3),
                             .tokens = pick(1, 60),
                             .format = *find_cache_format(formats[pick(0, 9)]),
                             .block = pick(1, 17),
                             .keeps_window_only = pick(0, 1) == 1,
                             .tensor_parallel = 1U << pick(0, 4)};
    EXPECT_EQ(layer_cache_bytes(layer, demand), enumerate(layer, demand)) << "round " << round;
  }
}

TEST(KvCache, TheBlockTypesOfGgmlHaveTheirBytes) {
  // 32 values each. Source: ggml-common.h, block_q8_0 and so on.
  const std::pair<const char*, std::uint64_t> cases[] = {{"q8_0", 34}, {"q5_1", 24}, {"q5_0", 22},
                                                         {"q4_1", 20}, {"q4_0", 18}, {"iq4_nl", 18},
                                                         {"fp8", 32},  {"fp16", 64}, {"fp32", 128}};
  for (const auto& [name, bytes] : cases) {
    EXPECT_EQ(find_cache_format(name)->bytes_of(32), bytes) << name;
  }
  EXPECT_EQ(find_cache_format("q8_0")->bytes_of(33), 68U) << "a started block is a whole one";
  EXPECT_EQ(find_cache_format("int8")->bytes_of(33), 37U)
      << "a scale of 4 bytes, whatever the size";
  EXPECT_FALSE(find_cache_format("q9_0"));
}

TEST(KvCache, MoreDevicesThanHeadsCopyAHead) {
  const auto layer = attention(32, 8, 128);
  const auto bytes = [&](std::uint32_t t) {
    return layer_cache_bytes(layer, {.tokens = 10, .tensor_parallel = t});
  };
  EXPECT_EQ(bytes(1), 10U * 8 * 256 * 2);
  EXPECT_EQ(bytes(4), 10U * 2 * 256 * 2);
  EXPECT_EQ(bytes(8), 10U * 1 * 256 * 2);
  EXPECT_EQ(bytes(32), bytes(8));
}

TEST(KvCache, AStateDoesNotGrowWithTheContext) {
  LayerShape layer;
  layer.attention = AttentionKind::Recurrent;
  layer.state_elements = 4096;
  const auto bytes = [&](std::uint64_t tokens) {
    return layer_cache_bytes(layer, {.sequences = 3, .tokens = tokens, .state_bytes = 4});
  };
  EXPECT_EQ(bytes(1), 3U * 4096 * 4);
  EXPECT_EQ(bytes(100'000), bytes(1));
}

TEST(KvCache, ACrossAttentionKeepsTheEncodersTokensToo) {
  auto layer = attention(8, 8, 64);
  const auto alone = layer_cache_bytes(layer, {.tokens = 512});
  layer.has_cross_attention = true;
  EXPECT_EQ(layer_cache_bytes(layer, {.tokens = 512}), 2 * alone);
  layer.is_encoder = true;
  EXPECT_EQ(layer_cache_bytes(layer, {.tokens = 512}), 0U) << "an encoder caches nothing";
}

TEST(KvCache, AHugeDemandDoesNotWrapToASmallOne) {
  const auto layer = attention(4'000'000'000U, 4'000'000'000U, 4'000'000'000U);
  const auto bytes =
      layer_cache_bytes(layer, {.sequences = 4'000'000'000U, .tokens = 4'000'000'000U});
  EXPECT_EQ(bytes, ~std::uint64_t{0});
}

}  // namespace
}  // namespace muster

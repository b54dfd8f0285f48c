#include "planner/memory/activation_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

namespace muster {
namespace {

// A block run by a machine that only counts: tensors come and go, the highest sum is remembered.
class CountingMachine {
 public:
  explicit CountingMachine(const StepDemand& demand) : demand_(demand) {}

  // A tensor of `size` values for every token of every sequence, added one token at a time.
  void rows(const std::string& name, std::uint64_t size) {
    rows(name, size, demand_.element_bytes);
  }
  void rows(const std::string& name, std::uint64_t size, std::uint64_t bytes_a_value) {
    std::uint64_t bytes = 0;
    for (std::uint64_t b = 0; b < demand_.sequences; ++b) {
      for (std::uint64_t s = 0; s < demand_.tokens; ++s) bytes += size * bytes_a_value;
    }
    add(name, bytes);
  }
  void add(const std::string& name, std::uint64_t bytes) {
    live_[name] = bytes;
    std::uint64_t sum = 0;
    for (const auto& [key, value] : live_) sum += value;
    peak_ = std::max(peak_, sum);
  }
  void free(std::initializer_list<const char*> names) {
    for (const auto* name : names) live_.erase(name);
  }
  std::uint64_t peak() const { return peak_; }

 private:
  const StepDemand demand_;
  std::map<std::string, std::uint64_t> live_;
  std::uint64_t peak_ = 0;
};

struct BlockSizes {
  std::uint64_t heads, kv_heads, d, wide, hidden;
};

void run_attention(CountingMachine& machine, const BlockSizes& sizes, const StepDemand& demand) {
  machine.rows("x", sizes.hidden);
  machine.rows("normalised", sizes.hidden);
  machine.rows("q", sizes.heads * sizes.d);
  machine.rows("k", sizes.kv_heads * sizes.d);
  machine.rows("v", sizes.kv_heads * sizes.d);
  machine.free({"normalised", "k", "v"});  // into the cache
  machine.rows("attended", sizes.heads * sizes.d);
  if (demand.math_attention) {
    std::uint64_t matrix = 0;
    for (std::uint64_t h = 0; h < sizes.heads; ++h) {
      matrix += demand.sequences * demand.tokens * demand.context * demand.element_bytes;
    }
    machine.add("scores", matrix);
    machine.add("weights", matrix);
  } else {
    machine.rows("log_sums", sizes.heads, 4);
  }
  machine.free({"q", "scores", "weights", "log_sums"});
  machine.rows("projected", sizes.hidden);
  machine.free({"attended", "projected"});  // added to x in place
}

std::uint64_t run_block(const BlockSizes& sizes, const StepDemand& demand) {
  CountingMachine machine(demand);
  run_attention(machine, sizes, demand);
  machine.rows("normalised", sizes.hidden);
  machine.rows("gate", sizes.wide);
  machine.rows("up", sizes.wide);  // gate *= up
  machine.rows("down", sizes.hidden);
  return machine.peak();
}

TEST(BlockPeak, IsThatOfAMachineThatCountsEveryTensor) {
  std::mt19937 random(4711);
  const auto pick = [&](std::uint32_t low, std::uint32_t high) {
    return std::uniform_int_distribution<std::uint32_t>(low, high)(random);
  };
  for (int round = 0; round < 300; ++round) {
    const std::uint32_t kv_heads = 1U << pick(0, 3);
    LayerShape layer;
    layer.kv_head_count = kv_heads;
    layer.head_count = kv_heads * pick(1, 8);
    layer.head_size = layer.value_head_size = pick(1, 64);
    layer.intermediate_size = pick(1, 900);
    layer.is_gated = true;
    const std::uint32_t hidden = pick(1, 300);
    const StepDemand demand{.sequences = pick(1, 4),
                            .tokens = pick(1, 50),
                            .context = pick(50, 300),
                            .element_bytes = pick(0, 1) == 0 ? 2U : 4U,
                            .math_attention = pick(0, 1) == 1};
    const BlockSizes sizes{layer.head_count, kv_heads, layer.head_size, layer.intermediate_size,
                           hidden};
    EXPECT_EQ(block_peak_bytes(layer, hidden, demand), run_block(sizes, demand))
        << "round " << round;
  }
}

LayerShape small_layer() {
  LayerShape layer;
  layer.head_count = 4;
  layer.kv_head_count = 2;
  layer.head_size = layer.value_head_size = 8;
  layer.intermediate_size = 64;
  layer.is_gated = true;
  return layer;
}

TEST(BlockPeak, RoutedExpertsCountTheTokensOfEach) {
  auto layer = small_layer();
  layer.expert_count = 8;
  layer.experts_per_token = 2;
  layer.shared_expert_count = 1;
  // 10 tokens, hidden 32, 2 bytes: state, normalised and output 3 x 640; the router 10 x 8 x 4; two
  // experts a token 2 x 10 x (32 + 128) x 2; the shared one 10 x 128 x 2.
  EXPECT_EQ(block_peak_bytes(layer, 32, {.tokens = 10, .context = 10}), 1920U + 320 + 6400 + 2560);
}

TEST(BlockPeak, LatentKeysAndValuesAreExpandedForEveryCachedToken) {
  auto layer = small_layer();
  layer.attention = AttentionKind::Latent;
  layer.head_size = 12;
  layer.value_head_size = 8;
  layer.intermediate_size = 1;
  // One token sees 1,000: expanded 1000 x 4 x 20 x 2; x 64, queries 96, attended 64, sums 16.
  EXPECT_EQ(block_peak_bytes(layer, 32, {.tokens = 1, .context = 1000}),
            160'000U + 64 + 96 + 64 + 16);
}

TEST(BlockPeak, DevicesShareHeadsAndTheWidePartButNotTheState) {
  const auto layer = small_layer();
  const StepDemand whole{.tokens = 100, .context = 100};
  auto half = whole;
  half.tensor_parallel = 2;
  const std::uint64_t state = 3 * 100 * 32 * 2;
  const auto of_one = block_peak_bytes(layer, 32, whole) - state;
  EXPECT_EQ(block_peak_bytes(layer, 32, half) - state, of_one / 2);
}

TEST(HeadPeak, AllLogitsAreTheClassicCauseOfRunningOut) {
  // 8,192 tokens and a vocabulary of 128,256: 4.2 GB, where the last token's are half a megabyte.
  EXPECT_EQ(logits_bytes(128'256, 8192, 1), 4'202'692'608U);
  EXPECT_EQ(logits_bytes(128'256, 1, 1), 513'024U);
  // Two devices: half of the columns each, and the gathered row.
  EXPECT_EQ(logits_bytes(128'256, 1, 2), 513'024U / 2 + 513'024U);
  EXPECT_EQ(logits_bytes(50'257, 1, 2), 4U * 25'129 + 4 * 50'257) << "padded to a multiple of 2";
}

TEST(HeadPeak, NormalisesOnlyTheRowsThatItMultiplies) {
  const StepDemand demand{.sequences = 2, .tokens = 100};
  EXPECT_EQ(head_peak_bytes(32, 2, demand), 200U * 32 * 2 + 2 * 32 * 2);
  EXPECT_EQ(head_peak_bytes(32, 200, demand), 2U * 200 * 32 * 2);
}

TEST(EmbeddingPeak, HoldsIdsWordsAndTheSum) {
  EXPECT_EQ(embedding_peak_bytes(32, {.sequences = 2, .tokens = 100}), 200U * 8 + 2 * 200 * 32 * 2);
}

}  // namespace
}  // namespace muster

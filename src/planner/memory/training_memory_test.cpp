#include "planner/memory/training_memory.h"

#include <gtest/gtest.h>

#include <cmath>

namespace muster {
namespace {

constexpr double kGb = 1e9;

// A GPT layer: as many KV heads as heads, wide = 4 hidden, no gate.
LayerShape gpt_layer(std::uint32_t heads, std::uint32_t hidden) {
  LayerShape layer;
  layer.head_count = layer.kv_head_count = heads;
  layer.head_size = layer.value_head_size = hidden / heads;
  layer.intermediate_size = 4 * hidden;
  return layer;
}

// Float32 mean and deviation (or their like) of both normalisations, which the paper leaves out.
std::uint64_t statistics(std::uint64_t tokens) { return tokens * 8; }

TEST(TrainingMemory, AGptLayerKeepsWhatKorthikantiEtAlCount) {
  // s b h (34 + 5 a s / h), arXiv 2205.05198, equation 1, for the paper's 22B model.
  const std::uint64_t s = 2048;
  const std::uint64_t b = 4;
  const std::uint64_t h = 6144;
  const std::uint64_t a = 64;
  const auto layer = gpt_layer(64, 6144);
  const MicrobatchDemand demand{.sequences = b, .tokens = s, .flash_attention = false};
  EXPECT_EQ(layer_kept_bytes(layer, 6144, demand),
            s * b * h * 34 + 5 * a * s * s * b + statistics(s * b));
}

TEST(TrainingMemory, TensorParallelismDividesWhatThePaperDivides) {
  // s b h (10 + 24 / t + 5 a s / (h t)), equation 2.
  const std::uint64_t s = 2048;
  const std::uint64_t h = 6144;
  const std::uint64_t t = 8;
  const auto layer = gpt_layer(64, 6144);
  const MicrobatchDemand demand{.tokens = s, .tensor_parallel = 8, .flash_attention = false};
  EXPECT_EQ(layer_kept_bytes(layer, 6144, demand),
            s * h * (10 + 24 / t) + 5 * 64 * s * s / t + statistics(s));
}

TEST(TrainingMemory, FlashAttentionDropsTheSquare) {
  const auto layer = gpt_layer(64, 6144);
  const MicrobatchDemand demand{.tokens = 2048};
  EXPECT_EQ(layer_kept_bytes(layer, 6144, demand),
            std::uint64_t{2048} * 6144 * 34 + statistics(2048) + 2048 * 64 * 4);
}

TEST(TrainingMemory, AGatedLayerKeepsEachTensorThatItsBackwardPassReads) {
  // Llama-3-8B: hidden 4096, 32 heads of 128, 8 KV heads, wide 14,336; one token, 2 bytes a value.
  LayerShape layer;
  layer.head_count = 32;
  layer.kv_head_count = 8;
  layer.head_size = layer.value_head_size = 128;
  layer.intermediate_size = 14'336;
  layer.is_gated = true;
  std::uint64_t values = 0;
  for (const std::uint64_t saved :
       {4096U, 4096U,         // input of the first normalisation; its output, for q, k and v
        4096U, 1024U, 1024U,  // q, k, v, for attention
        4096U,                // attended, for attention and the output projection
        4096U, 4096U,         // input of the second normalisation; its output
        14'336U, 14'336U,     // gate, for SiLU; up, for the product
        14'336U, 14'336U}) {  // SiLU(gate), for the product; the product, for down
    values += saved;
  }
  const std::uint64_t statistics_and_sums = 2 * 4 + 32 * 4;
  EXPECT_EQ(layer_kept_bytes(layer, 4096, {.tokens = 1}), 2 * values + statistics_and_sums);
}

TEST(TrainingMemory, RoutedExpertsKeepTheRowsOfEachThatATokenPasses) {
  auto layer = gpt_layer(4, 64);
  layer.is_gated = true;
  const auto dense = layer_kept_bytes(layer, 64, {.tokens = 10});
  layer.expert_count = 8;
  layer.experts_per_token = 2;
  layer.shared_expert_count = 1;
  // Two expert parts more than the dense one, two gathered inputs, and the router's logits.
  const std::uint64_t more = 10 * (2 * 4 * 256 * 2 + 2 * 64 * 2 + 8 * 4);
  EXPECT_EQ(layer_kept_bytes(layer, 64, {.tokens = 10}), dense + more);
}

TEST(TrainingMemory, RecomputationKeepsTheInputAlone) {
  // 2 s b h, arXiv 2205.05198, table 2.
  EXPECT_EQ(layer_input_bytes(6144, {.sequences = 4, .tokens = 2048}), 2ULL * 2048 * 4 * 6144);
}

struct StateCase {
  TrainingPrecision precision;
  std::uint64_t bytes;
};

TEST(TrainingMemory, AnElementTakesItsPrecisionsBytes) {
  const StateCase cases[] = {{TrainingPrecision::Fp32, 16},
                             {TrainingPrecision::Mixed, 16},
                             {TrainingPrecision::MixedFp32Grad, 18},
                             {TrainingPrecision::Bf16, 8}};
  for (const auto& [precision, bytes] : cases) {
    TrainingOptions options;
    options.precision = precision;
    const auto states = training_states(1000, options);
    EXPECT_EQ(states.weights + states.gradients + states.optimizer, 1000 * bytes);
    EXPECT_EQ(states.gathered, 0U);
  }
}

TEST(TrainingMemory, ZeroDividesAsInItsFigureOne) {
  // ZeRO, arXiv 1910.02054, figure 1: 7.5 billion parameters over 64 ranks.
  const double expected_gb[] = {120, 31.4, 16.6, 1.9};
  for (std::uint32_t stage = 0; stage <= 3; ++stage) {
    TrainingOptions options;
    options.zero_stage = stage;
    options.data_parallel = 64;
    const auto states = training_states(7'500'000'000, options);
    const auto sum = states.weights + states.gradients + states.optimizer;
    EXPECT_NEAR(static_cast<double>(sum) / kGb, expected_gb[stage], 0.05) << "stage " << stage;
  }
}

TEST(TrainingMemory, StageThreeGathersTheUnitThatComputes) {
  TrainingOptions options;
  options.zero_stage = 3;
  options.data_parallel = 4;
  EXPECT_EQ(training_states(131'000'000, options).gathered, 4U * 131'000'000);
  options.data_parallel = 1;
  EXPECT_EQ(training_states(131'000'000, options).gathered, 0U) << "nothing is divided";
}

TEST(TrainingMemory, RanksTogetherHoldNoLessThanOne) {
  for (const std::uint64_t elements : {1ULL, 999ULL, 1'000'003ULL}) {
    for (const std::uint32_t ranks : {2U, 3U, 7U, 64U}) {
      TrainingOptions options;
      options.zero_stage = 3;
      options.data_parallel = ranks;
      const auto states = training_states(elements, options);
      EXPECT_GE(states.weights * ranks, elements * 2);
      EXPECT_LT(states.weights * ranks, (elements + ranks) * 2);
    }
  }
}

}  // namespace
}  // namespace muster

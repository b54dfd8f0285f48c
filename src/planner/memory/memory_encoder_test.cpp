#include "planner/memory/memory_encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "planner/memory/memory_fixture.h"

namespace muster {
namespace {

ModelShape mini_lm() {
  auto shape = encoder_shape("bert", 6, 384, 12, 1536);
  shape.vocab_size = 30'522;
  shape.length_max = 512;
  return shape;
}

constexpr EncoderRun kFp32{.element_bytes = 4};
constexpr EncoderRun kBf16{.element_bytes = 2};
constexpr EncoderRun kNoProducts{.element_bytes = 2, .kernels = CpuKernels::Avx512};
constexpr EncoderRun kInt8{.element_bytes = 4, .is_int8 = true};

// The bytes below in this file's MiniLM cases are what a worker's counting allocator showed for the
// real all-MiniLM-L6-v2 with torch 2.11 on AVX-512 with bf16.

std::uint64_t weights(const ModelShape& shape, const EncoderRun& run) {
  auto sum = encoder_table_bytes(shape);
  for (const auto& layer : shape.layers) sum += encoder_layer_bytes(shape, layer, run);
  return sum;
}

TEST(MemoryEncoder, TheWeightsOfMiniLmAreWhatItsWorkerCounts) {
  EXPECT_EQ(weights(mini_lm(), kFp32), 90'258'432U);
  EXPECT_EQ(weights(mini_lm(), kBf16), 69'024'768U);
}

TEST(MemoryEncoder, TheBuffersOfMiniLmAreWhatItsWorkerCounts) {
  struct Case {
    std::uint64_t sequences, tokens, fp32, bf16;
  };
  for (const auto& [sequences, tokens, fp32, bf16] :
       {Case{1, 1, 178'176, 12'160}, Case{3, 20, 698'752, 424'448},
        Case{64, 16, 7'877'760, 5'518'464}, Case{100, 10, 7'877'568, 5'389'248},
        Case{1, 512, 5'650'048, 2'900'736}, Case{4, 512, 8'016'640, 5'657'344}}) {
    SCOPED_TRACE(sequences);
    EXPECT_EQ(encoder_lane_bytes(mini_lm(), sequences, tokens, kFp32), fp32);
    EXPECT_EQ(encoder_lane_bytes(mini_lm(), sequences, tokens, kBf16), bf16);
  }
}

TEST(MemoryEncoder, APassOfOneTokenIsWorkedOutByHand) {
  // Hidden 64, two heads of 32, wide 96, fp32 unpacked: one token is padded to 16 rows. The state
  // and the attended rows 2 x 16 x 64 x 4; tables of a head 2 x 32 x 16 + 6 (32 + 16) floats; the
  // joined projection 16 x 192 x 4 and a pointer, which is more than 16 x (96 + 64) x 4.
  auto shape = encoder_shape("bert", 2, 64, 2, 96);
  shape.length_max = 40;
  EXPECT_EQ(encoder_lane_bytes(shape, 1, 1, kFp32), 8192U + 5248 + 12'288 + 8);
  // bf16: the state in float32 and bf16, attended rows in bf16; one row as it is, the joined
  // projection 192 x 2 and a pointer.
  EXPECT_EQ(encoder_lane_bytes(shape, 1, 1, kBf16), 64U * (4 + 2 + 2) + 5248 + 384 + 8);
  // Without bf16 products: 16 rows, their joined projection, all its sums in float32, 128 bytes.
  EXPECT_EQ(encoder_lane_bytes(shape, 1, 1, kNoProducts),
            8192U + 5248 + 16 * 192 * 2 + 16 * 192 * 4 + 128);
}

TEST(MemoryEncoder, Int8IsWorkedOutByHand) {
  auto shape = encoder_shape("bert", 2, 64, 2, 96);
  shape.length_max = 40;
  // One row as it is: the state and the attended row in float32, the tables of a head; the joined
  // projection in float32 beside the row's 64 quants and its scale. The feed-forward part has less:
  // 96 and 64 floats, 96 quants and a scale.
  EXPECT_EQ(encoder_lane_bytes(shape, 1, 1, kInt8), 64U * 8 + 5248 + 192 * 4 + 64 + 4);
  // Outputs to 32, inputs to 4, and three times 4 bytes for each output.
  const auto& layer = shape.layers.front();
  const std::uint64_t matrices = 192 * (64 + 12) + 64 * (64 + 12) + 96 * (64 + 12) + 64 * (96 + 12);
  EXPECT_EQ(encoder_layer_bytes(shape, layer, kInt8), matrices + 4 * 64 * 4);
  const auto odd = encoder_shape("bert", 1, 21, 3, 37);
  EXPECT_EQ(encoder_layer_bytes(odd, odd.layers.front(), kInt8),
            64U * (24 + 12) + 32 * (24 + 12) + 64 * (24 + 12) + 32 * (40 + 12) + 4 * 21 * 4);
  // While the first layer is packed, the joined projections of both are there.
  const std::uint64_t joined = 3 * (64 * 64 + 64) * 4;
  EXPECT_EQ(encoder_load_bytes(shape, kInt8, true), 2 * joined - matrices);
  // Every CPU has the same product; only attention differs.
  const EncoderRun avx2{.element_bytes = 4, .kernels = CpuKernels::Avx2, .is_int8 = true};
  EXPECT_EQ(encoder_layer_bytes(shape, layer, avx2), encoder_layer_bytes(shape, layer, kInt8));
  EXPECT_EQ(encoder_lane_bytes(shape, 1, 1, avx2),
            64U * 8 + (2 * 32 * 8 + 6 * (32 + 8)) * 4 + 192 * 4 + 64 + 4);
}

// 1,024 rows are 4 blocks of 240 and one of 64; for two lanes 5 of 174 and one of 154. While the
// last one is multiplied, the results of all are there, and its own rows in 8 bits: 384 quants and
// a scale.
TEST(MemoryEncoder, APassThatIsCutForTwoLanesHasALargerLastBlock) {
  auto two = kInt8;
  two.lanes = 2;
  EXPECT_EQ(
      encoder_lane_bytes(mini_lm(), 64, 16, two) - encoder_lane_bytes(mini_lm(), 64, 16, kInt8),
      (154U - 64) * (384 + 4));
  auto two_bf16 = kBf16;
  two_bf16.lanes = 2;
  EXPECT_EQ(encoder_lane_bytes(mini_lm(), 64, 16, two_bf16),
            encoder_lane_bytes(mini_lm(), 64, 16, kBf16));
}

TEST(MemoryEncoder, PackedMatricesArePaddedToBlocks) {
  auto shape = encoder_shape("bert", 1, 21, 3, 37);
  const auto& layer = shape.layers.front();
  const std::uint64_t norms = 4 * 21 * 4;
  const std::uint64_t biases = 5 * 21 + 37;
  EXPECT_EQ(encoder_layer_bytes(shape, layer, kFp32),
            4 * (63 * 21 + 21 * 21 + 37 * 21 + 21 * 37 + biases) + norms);
  // bf16: outputs to 64, inputs to 2; four biases of 64 floats.
  EXPECT_EQ(encoder_layer_bytes(shape, layer, kBf16),
            2 * (64 * 22 + 64 * 22 + 64 * 22 + 64 * 38) + 4 * 64 * 4 + norms);
  EXPECT_EQ(encoder_layer_bytes(shape, layer, kNoProducts),
            2 * (63 * 21 + 21 * 21 + 37 * 21 + 21 * 37 + biases) + norms);
}

TEST(MemoryEncoder, Float32IsPackedFrom129InputsOnWithAvx512AndAlwaysWithAvx2) {
  auto shape = encoder_shape("bert", 1, 200, 4, 100);
  const auto& layer = shape.layers.front();
  const std::uint64_t rest = 4 * (5 * 200 + 100) + 4 * 200 * 4;
  // 200 inputs pad to 208, 600 outputs to 640, 200 to 256, 100 to 128; the last matrix has 100.
  EXPECT_EQ(encoder_layer_bytes(shape, layer, kFp32),
            4U * (640 * 208 + 256 * 208 + 128 * 208 + 200 * 100) + rest);
  const EncoderRun avx2{.element_bytes = 4, .kernels = CpuKernels::Avx2};
  EXPECT_EQ(encoder_layer_bytes(shape, layer, avx2),
            4U * (608 * 200 + 208 * 200 + 112 * 200 + 208 * 100) + 4U * (608 + 208 + 112 + 208) +
                4 * 200 * 4);
  // One row as it is: the state and the attended row, the joined projection and a pointer.
  shape.length_max = 40;
  EXPECT_EQ(encoder_lane_bytes(shape, 1, 1, avx2),
            200U * 8 + (2 * 56 * 8 + 6 * (56 + 8)) * 4 + 600 * 4 + 8);
  // A joined projection in float32; no copy, no self-test.
  EXPECT_EQ(encoder_load_bytes(shape, avx2, true), 3U * (200 * 200 + 200) * 4);
}

TEST(MemoryEncoder, MpnetKeepsABiasOfEveryOffset) {
  auto shape = encoder_shape("mpnet", 1, 32, 4, 64);
  shape.vocab_size = 61;
  shape.length_max = 200;
  const std::uint64_t tables = (61 + 202 + 2) * 32 * 4;
  EXPECT_EQ(encoder_table_bytes(shape), tables + 4 * 399 * 4);
  shape.family = "roberta";
  EXPECT_EQ(encoder_table_bytes(shape), tables);
}

TEST(MemoryEncoder, LoadingMiniLmTakesWhatItsWorkerCounts) {
  EXPECT_EQ(encoder_load_bytes(mini_lm(), kFp32, true), 11'010'944U);
  EXPECT_EQ(encoder_load_bytes(mini_lm(), kBf16, true), 1'774'080U);  // a joined projection
}

TEST(MemoryEncoder, AFileOf16BitsIsThereInFloat32BeforeItIsPacked) {
  const auto shape = encoder_shape("bert", 4, 1024, 16, 4096);
  const std::uint64_t wide = 4 * (12 * 1024 * 1024 + 9 * 1024);  // a layer in float32
  const std::uint64_t packed = wide / 2;
  // bf16, at the first layer: four wide layers, the first one packed and the copy of its last
  // matrix, where in the end there are four packed ones; our own packing needs no copy, but its
  // biases are float32.
  EXPECT_EQ(encoder_load_bytes(shape, kNoProducts, false), 4 * wide - 3 * packed + 2 * 1024 * 4096);
  EXPECT_EQ(encoder_load_bytes(shape, kBf16, false), 4 * wide - 3 * (packed + 2 * 9 * 1024));
  // fp32: one layer twice, and the copy.
  EXPECT_EQ(encoder_load_bytes(shape, kFp32, false), wide + 4 * 1024 * 4096);
}

TEST(MemoryEncoder, ABatchIsItsLargestPass) {
  const auto shape = mini_lm();
  // 1,020 tokens of 20 and then 4 x 20: passes of at most 1,024.
  const std::vector<std::uint32_t> lengths(55, 20);
  EXPECT_EQ(encoder_lane_bytes(shape, lengths, kFp32), encoder_lane_bytes(shape, 51, 20, kFp32));
  EXPECT_EQ(encoder_lane_bytes(shape, 1'000'000'000, 20, kFp32),
            encoder_lane_bytes(shape, 51, 20, kFp32));
  std::vector<std::uint32_t> mixed{1, 500, 12, 300, 300};
  const auto one_order = encoder_lane_bytes(shape, mixed, kFp32);
  EXPECT_GE(one_order, encoder_lane_bytes(shape, std::span(mixed).first(3), kFp32));
}

TEST(MemoryEncoder, MoreTextsOrLongerOnesNeverTakeLess) {
  for (const auto& run : {kFp32, kBf16, kNoProducts, kInt8}) {
    std::uint64_t before = 0;
    for (std::uint64_t sequences = 1; sequences < 70; ++sequences) {
      const auto bytes = encoder_lane_bytes(mini_lm(), sequences, 16, run);
      EXPECT_GE(bytes, before) << sequences;
      before = bytes;
    }
    before = 0;
    for (std::uint64_t tokens = 1; tokens <= 512; ++tokens) {
      const auto bytes = encoder_lane_bytes(mini_lm(), 1, tokens, run);
      EXPECT_GE(bytes, before) << tokens;
      before = bytes;
    }
  }
}

TEST(MemoryEncoder, AGpuHasAPassOfABatchInEachOfTwoLanes) {
  const auto shape = mini_lm();
  // 4,096 rows in two lanes: the state, the wide rows and their product, 2 x 384 + 1,536 columns.
  EXPECT_EQ(gpu_encoder_pass_bytes(shape, 16, 2), 2U * 4096 * (2 * 384 + 1536) * 2);
  EXPECT_EQ(gpu_encoder_pass_bytes(shape, 512, 4), 2U * 4096 * (2 * 384 + 1536) * 4);
  // A text of 5,000 tokens takes 6,144 rows; one beyond the largest count takes its own.
  EXPECT_EQ(gpu_encoder_pass_bytes(shape, 5000, 2), 2U * 6144 * (2 * 384 + 1536) * 2);
  EXPECT_EQ(gpu_encoder_pass_bytes(shape, 20000, 2), 2U * 20000 * (2 * 384 + 1536) * 2);
  EXPECT_EQ(gpu_encoder_layer_bytes(shape, shape.layers[0], 2),
            2U * (4 * 384 * 384 + 2 * 384 * 1536 + 9 * 384 + 1536));
}

TEST(MemoryEncoder, WhereTheWideRowsAreNarrowAttentionOfAGpuCounts) {
  // 5 x 384 columns are more than 2 x 384 + 768.
  const auto shape = encoder_shape("bert", 6, 384, 12, 768);
  EXPECT_EQ(gpu_encoder_pass_bytes(shape, 16, 4), 2U * 4096 * 5 * 384 * 4);
}

TEST(MemoryEncoder, OnlyTheEnginesFamiliesAreItsEncoders) {
  EXPECT_TRUE(is_engine_encoder(mini_lm()));
  EXPECT_FALSE(is_engine_encoder(encoder_shape("deberta", 6, 384, 12, 1536)));
  EXPECT_FALSE(is_engine_encoder(llama({}).shape));
}

TEST(MemoryEncoder, AHostileLengthIsComputedAtOnce) {
  auto shape = mini_lm();
  shape.length_max = 4'000'000'000U;
  EXPECT_GT(encoder_lane_bytes(shape, 1, 4'000'000'000U, kFp32), std::uint64_t{10'000'000'000'000});
}

}  // namespace
}  // namespace muster

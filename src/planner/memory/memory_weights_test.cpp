#include "planner/memory/memory_weights.h"

#include <gtest/gtest.h>

#include "planner/memory/memory_fixture.h"

namespace muster {
namespace {

const DecoderSizes kSizes{
    .layers = 1, .hidden = 16, .heads = 8, .kv_heads = 2, .head_size = 4, .wide = 24, .vocab = 50};

std::uint64_t bytes_of(const ModelDescription& model, std::size_t unit,
                       const WeightDemand& demand) {
  return unit_weight_bytes(model, model.units[unit], demand);
}

TEST(MemoryWeights, AsStoredTheyAreTheFilesBytes) {
  const auto model = llama(kSizes);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < model.units.size(); ++i) {
    EXPECT_EQ(bytes_of(model, i, {}), model.units[i].stored_bytes);
    sum += model.units[i].stored_bytes;
  }
  EXPECT_EQ(sum, model.stored_bytes());
}

TEST(MemoryWeights, ALoadDtypeConvertsFloatingTensorsAlone) {
  ModelShape shape;
  MemoryFixture fixture(shape);
  fixture.unit(UnitKind::Block, "model.layers.0")
      .tensor("a.weight", {10, 10}, "BF16", 2)
      .tensor("b.weight", {10, 10}, "F32", 4)
      .tensor("b.qweight", {10, 10}, "I32", 4)
      .tensor("b.scales", {10}, "F16", 2)
      .tensor("position_ids", {10}, "I64", 8);
  // 100 x 4 + 100 x 4 + 400 as they are + 10 x 4 + 80 as they are.
  EXPECT_EQ(bytes_of(fixture.model(), 0, {.element_bytes = 4}), 1320U);
  EXPECT_EQ(bytes_of(fixture.model(), 0, {.element_bytes = 2}), 200U + 200 + 400 + 20 + 80);
}

// 32 values of Q8_0 are 34 bytes in the file. The engine makes 4 or 2 bytes of each.
TEST(MemoryWeights, ALoadDtypeUndoesTheBlocksOfAGgufFile) {
  MemoryFixture fixture(llama(kSizes).shape);
  fixture.unit(UnitKind::Block, "blk.0").tensor("blk.0.attn_q.weight", {10, 32}, "Q8_0", 1);
  fixture.model().tensors[0].bytes = 10 * 34;
  EXPECT_EQ(bytes_of(fixture.model(), 0, {}), 340U);
  EXPECT_EQ(bytes_of(fixture.model(), 0, {.element_bytes = 4}), 1280U);
  EXPECT_EQ(bytes_of(fixture.model(), 0, {.element_bytes = 2}), 640U);
}

TEST(MemoryWeights, FourDevicesCutABlockAsMegatronDoes) {
  const auto model = llama(kSizes);
  // Of q and o [32 x 16] a quarter; of k and v [8 x 16], two heads, one; of the three matrices of
  // 24 x 16 a quarter; both norms whole.
  const std::uint64_t elements = 2 * 32 * 16 / 4 + 2 * 4 * 16 + 3 * 24 * 16 / 4 + 2 * 16;
  EXPECT_EQ(bytes_of(model, 1, {.tensor_parallel = 4}), 2 * elements);
}

TEST(MemoryWeights, AnUnevenVocabularyIsPaddedToAMultipleOfTheDevices) {
  const auto model = llama(kSizes);
  // 50 rows over 4 devices: 13 of 16 values each.
  EXPECT_EQ(bytes_of(model, 0, {.tensor_parallel = 4}), 13U * 16 * 2);
  EXPECT_EQ(bytes_of(model, 2, {.tensor_parallel = 4}), 13U * 16 * 2 + 16 * 2);
}

TEST(MemoryWeights, AnUnevenFeedForwardPartIsPaddedToo) {
  auto sizes = kSizes;
  sizes.wide = 26;
  const auto model = llama(sizes);
  const std::uint64_t elements = 2 * 32 * 16 / 4 + 2 * 4 * 16 + 3 * 7 * 16 + 2 * 16;
  EXPECT_EQ(bytes_of(model, 1, {.tensor_parallel = 4}), 2 * elements);
}

TEST(MemoryWeights, AJoinedProjectionCopiesItsKeysAndValuesToo) {
  auto model = llama(kSizes);
  MemoryFixture fixture(model.shape);
  fixture.unit(UnitKind::Block, "model.layers.0")
      .tensor("model.layers.0.self_attn.qkv_proj.weight", {32 + 2 * 8, 16});
  // Of 8 + 2 x 2 heads of 4 rows, each of 4 devices has 2 + 2 x 1.
  EXPECT_EQ(bytes_of(fixture.model(), 0, {.tensor_parallel = 4}), 4U * 4 * 16 * 2);
}

TEST(MemoryWeights, RoutersLatentProjectionsAndPositionTablesAreCopied) {
  ModelShape shape = llama(kSizes).shape;
  shape.layers[0].attention = AttentionKind::Latent;
  MemoryFixture fixture(shape);
  fixture.unit(UnitKind::Block, "model.layers.0")
      .tensor("model.layers.0.mlp.gate.weight", {64, 16})
      .tensor("model.layers.0.self_attn.kv_a_proj_with_mqa.weight", {40, 16})
      .tensor("model.layers.0.mlp.experts.3.down_proj.weight", {16, 24});
  EXPECT_EQ(bytes_of(fixture.model(), 0, {.tensor_parallel = 4}),
            2U * (64 * 16 + 40 * 16 + 16 * 6));
  MemoryFixture positions(shape);
  positions.unit(UnitKind::Embedding, "transformer").tensor("transformer.wpe.weight", {1024, 16});
  EXPECT_EQ(bytes_of(positions.model(), 0, {.tensor_parallel = 4}), 1024U * 16 * 2);
}

TEST(MemoryWeights, TheSharesOfAllDevicesCoverTheWhole) {
  for (const std::uint32_t t : {1U, 2U, 4U, 8U}) {
    const auto model = llama(kSizes);
    for (std::size_t unit = 0; unit < model.units.size(); ++unit) {
      const auto whole = bytes_of(model, unit, {});
      const auto share = bytes_of(model, unit, {.tensor_parallel = t});
      EXPECT_GE(share * t, whole);
      EXPECT_LE(share, whole);
    }
  }
}

TEST(MemoryWeights, FindsTheMatrixThatATiedHeadReads) {
  auto sizes = kSizes;
  EXPECT_EQ(tied_matrix(llama(sizes)), nullptr);
  sizes.is_tied = true;
  const auto model = llama(sizes);
  ASSERT_NE(tied_matrix(model), nullptr);
  EXPECT_EQ(tied_matrix(model)->name, "model.embed_tokens.weight");
}

TEST(MemoryWeights, CountsTheElementsThatAreTrained) {
  const auto model = llama(kSizes);
  EXPECT_EQ(trained_elements(model, model.units[0], 1), 50U * 16);
  EXPECT_EQ(trained_elements(model, model.units[0], 4), 13U * 16);
}

}  // namespace
}  // namespace muster

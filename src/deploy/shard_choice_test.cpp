#include "deploy/shard_choice.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

// head_count, kv_head_count, layer_count of the models' config.json.
constexpr ModelHeads kLlama70b{64, 8, 80};
constexpr ModelHeads kLlama7b{32, 32, 32};
constexpr ModelHeads kQwen7b{28, 4, 28};
constexpr ModelHeads kUnknown{};

TEST(ChooseShards, SplitsTensorsWhereTheHeadsDivide) {
  for (const std::uint32_t count : {1U, 2U, 4U, 8U}) {
    const auto chosen = choose_shards(ServerApi::Vllm, count, kLlama70b);
    ASSERT_TRUE(chosen) << chosen.error().message;
    EXPECT_EQ(chosen->tensor, count);
    EXPECT_EQ(chosen->pipeline, 1U);
  }
}

// GPUStack #2259 gave vLLM three tensor shards of 32 heads, which it refuses (vLLM #414).
TEST(ChooseShards, PutsTheRestIntoPipelineStages) {
  const auto three = choose_shards(ServerApi::Vllm, 3, kLlama7b);
  ASSERT_TRUE(three);
  EXPECT_EQ(three->tensor, 1U);
  EXPECT_EQ(three->pipeline, 3U);
  const auto six = choose_shards(ServerApi::Vllm, 6, kLlama7b);
  ASSERT_TRUE(six);
  EXPECT_EQ(six->tensor, 2U);
  EXPECT_EQ(six->pipeline, 3U);
}

TEST(ChooseShards, LetsVllmRepeatKeyValueHeads) {
  // 8 does not divide 28 heads; 4 does, and 4 key-value heads divide by 4.
  const auto eight = choose_shards(ServerApi::Vllm, 8, kQwen7b);
  ASSERT_TRUE(eight);
  EXPECT_EQ(eight->tensor, 4U);
  EXPECT_EQ(eight->pipeline, 2U);
  // 16 shards of 8 key-value heads: two shards hold the same head.
  EXPECT_TRUE(can_split_heads(ServerApi::Vllm, 16, kLlama70b));
  EXPECT_FALSE(can_split_heads(ServerApi::Tgi, 16, kLlama70b));
}

// TGI #1354.
TEST(ChooseShards, TellsTgiWhichCountsWork) {
  const auto three = choose_shards(ServerApi::Tgi, 3, kLlama7b);
  ASSERT_FALSE(three);
  EXPECT_EQ(three.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(three.error().message,
            "TGI cannot split a model of 32 heads and 32 layers over 3 devices; these counts work: "
            "1, 2");
  const auto eight = choose_shards(ServerApi::Tgi, 8, kQwen7b);
  ASSERT_FALSE(eight);
  EXPECT_EQ(eight.error().message,
            "TGI cannot split a model of 28 heads (4 of keys and values) and 28 layers over 8 "
            "devices; these counts work: 1, 2, 4");
}

TEST(ChooseShards, RefusesMoreStagesThanLayers) {
  const auto chosen =
      choose_shards(ServerApi::Vllm, 7, {.head_count = 4, .kv_head_count = 4, .layer_count = 3});
  ASSERT_FALSE(chosen);
  EXPECT_NE(chosen.error().message.find("these counts work: 1, 2, 3, 4, 6"), std::string::npos)
      << chosen.error().message;
}

TEST(ChooseShards, IsCautiousWithUnknownHeads) {
  const auto twelve = choose_shards(ServerApi::Vllm, 12, kUnknown);
  ASSERT_TRUE(twelve);
  EXPECT_EQ(twelve->tensor, 4U);
  EXPECT_EQ(twelve->pipeline, 3U);
  const auto tgi = choose_shards(ServerApi::Tgi, 3, kUnknown);
  ASSERT_TRUE(tgi);
  EXPECT_EQ(tgi->tensor, 3U);
}

// For every count and every number of heads: what is chosen uses all devices and is legal.
TEST(ChooseShards, IsAlwaysLegal) {
  for (const auto api : {ServerApi::Tgi, ServerApi::Vllm}) {
    for (std::uint32_t heads = 1; heads <= 48; ++heads) {
      for (std::uint32_t kv = 1; kv <= heads; ++kv) {
        if (heads % kv != 0) continue;
        for (std::uint32_t count = 1; count <= 16; ++count) {
          const auto chosen = choose_shards(api, count, {heads, kv, 16});
          if (!chosen) continue;
          EXPECT_EQ(chosen->tensor * chosen->pipeline, count);
          EXPECT_EQ(heads % chosen->tensor, 0U);
          EXPECT_TRUE(kv % chosen->tensor == 0 || chosen->tensor % kv == 0);
          if (api == ServerApi::Tgi) {
            EXPECT_EQ(chosen->pipeline, 1U);
            EXPECT_EQ(kv % chosen->tensor, 0U);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace muster

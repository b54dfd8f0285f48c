#include "modelfile/decoder_config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace muster {
namespace {

using nlohmann::json;
using Ids = std::vector<std::uint32_t>;

/// A config of two layers of width 32 with `more` keys.
std::string config_of(const std::string& family, const json& more = json::object()) {
  json config{{"model_type", family},         {"vocab_size", 100}, {"num_attention_heads", 4},
              {"num_hidden_layers", 2},       {"hidden_size", 32}, {"intermediate_size", 40},
              {"max_position_embeddings", 64}};
  config.update(more);
  return config.dump();
}

Result<DecoderSpec> parse(const std::string& family, const json& more = json::object()) {
  return parse_decoder_config(config_of(family, more), std::nullopt);
}

std::string error_of(const std::string& family, const json& more) {
  const auto spec = parse(family, more);
  EXPECT_FALSE(spec);
  return spec ? std::string() : spec.error().message;
}

TEST(DecoderConfig, LlamaWithTheDefaultsOfItsClass) {
  const auto spec = parse("llama");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->family, DecoderFamily::Llama);
  EXPECT_EQ(spec->naming, TensorNaming::HuggingFace);
  EXPECT_EQ(spec->head_size, 8U);
  EXPECT_EQ(spec->kv_head_count, 4U);
  EXPECT_EQ(spec->norm_epsilon, 1e-6);
  EXPECT_EQ(spec->rope.style, RopeStyle::Halves);
  EXPECT_EQ(spec->rope.size, 8U);
  EXPECT_EQ(spec->rope.base, 10000.0);
  EXPECT_EQ(spec->activation, DecoderActivation::Silu);
  EXPECT_TRUE(spec->is_gated);
  EXPECT_FALSE(spec->has_tied_head);
  EXPECT_DOUBLE_EQ(spec->attention_scale, 1 / std::sqrt(8.0));
  EXPECT_EQ(spec->bos_id, 1U);
  EXPECT_EQ(spec->stop_ids, Ids{2});
}

TEST(DecoderConfig, WhatEachFamilyDoesItsOwnWay) {
  const auto gpt2 = parse_decoder_config(
      R"({"model_type": "gpt2", "vocab_size": 100, "n_embd": 32, "n_head": 4, "n_layer": 2,
          "n_positions": 64, "scale_attn_by_inverse_layer_idx": true})",
      std::nullopt);
  ASSERT_TRUE(gpt2) << gpt2.error().message;
  EXPECT_EQ(gpt2->rope.style, RopeStyle::None);
  EXPECT_EQ(gpt2->position_rows, 64U);
  EXPECT_EQ(gpt2->intermediate_size, 128U);
  EXPECT_TRUE(gpt2->has_layer_scale && gpt2->has_query_bias && gpt2->has_tied_head);
  EXPECT_EQ(gpt2->activation, DecoderActivation::GeluTanh);

  const auto opt = parse("opt", {{"ffn_dim", 40}, {"do_layer_norm_before", false}});
  ASSERT_TRUE(opt) << opt.error().message;
  EXPECT_EQ(opt->position_offset, 2U);
  EXPECT_EQ(opt->position_rows, 66U);
  EXPECT_FALSE(opt->is_norm_before || opt->has_final_norm);
  EXPECT_EQ(opt->activation, DecoderActivation::Relu);

  const auto neox = parse("gpt_neox", {{"rotary_pct", 0.5}, {"rotary_emb_base", 5000}});
  ASSERT_TRUE(neox) << neox.error().message;
  EXPECT_TRUE(neox->is_parallel);
  EXPECT_EQ(neox->rope.size, 4U);
  EXPECT_EQ(neox->rope.base, 5000.0);
  EXPECT_EQ(neox->norm, NormKind::Layer);

  const auto qwen3 = parse("qwen3", {{"num_key_value_heads", 2}});
  ASSERT_TRUE(qwen3) << qwen3.error().message;
  EXPECT_TRUE(qwen3->has_qk_norm);
  EXPECT_EQ(qwen3->head_size, 128U);
  EXPECT_TRUE(qwen3->stop_ids.empty());

  const auto mixtral = parse("mixtral", {{"num_key_value_heads", 2}, {"num_local_experts", 4}});
  ASSERT_TRUE(mixtral) << mixtral.error().message;
  EXPECT_EQ(mixtral->expert_count, 4U);
  EXPECT_EQ(mixtral->experts_per_token, 2U);
  EXPECT_EQ(mixtral->rope.base, 1e6);

  const auto mistral = parse("mistral", {{"num_key_value_heads", 2}, {"sliding_window", 16}});
  ASSERT_TRUE(mistral) << mistral.error().message;
  EXPECT_EQ(mistral->windows, (Ids{16, 16}));
}

TEST(DecoderConfig, Gemma2HasItsNormsCapsAndScales) {
  const auto spec = parse("gemma2", {{"head_dim", 8},
                                     {"num_key_value_heads", 2},
                                     {"sliding_window", 16},
                                     {"query_pre_attn_scalar", 64},
                                     {"attn_logit_softcapping", nullptr}});
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->norm_weight_offset, 1.0);
  EXPECT_TRUE(spec->has_post_norms && spec->has_tied_head);
  EXPECT_EQ(spec->attention_cap, 0.0);
  EXPECT_EQ(spec->logit_cap, 30.0);
  EXPECT_DOUBLE_EQ(spec->attention_scale, 1.0 / 8);
  EXPECT_DOUBLE_EQ(spec->embedding_scale, std::sqrt(32.0));
  EXPECT_EQ(spec->windows, (Ids{16, 0}));
}

TEST(DecoderConfig, RopeIsReadInItsOldAndItsNewForm) {
  const json scaling{{"rope_type", "llama3"},
                     {"factor", 8.0},
                     {"low_freq_factor", 1.0},
                     {"high_freq_factor", 4.0},
                     {"original_max_position_embeddings", 32}};
  auto whole = scaling;
  whole["rope_theta"] = 500000.0;
  for (const auto& more : {json{{"rope_scaling", scaling}, {"rope_theta", 500000.0}},
                           json{{"rope_parameters", whole}}}) {
    const auto spec = parse("llama", more);
    ASSERT_TRUE(spec) << spec.error().message;
    EXPECT_EQ(spec->rope.scaling, RopeScaling::Llama3);
    EXPECT_EQ(spec->rope.base, 500000.0);
    EXPECT_EQ(spec->rope.factor, 8.0);
    EXPECT_EQ(spec->rope.original_length, 32U);
  }
  const auto linear = parse("llama", {{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}});
  ASSERT_TRUE(linear) << linear.error().message;
  EXPECT_EQ(linear->rope.scaling, RopeScaling::Linear);
}

TEST(DecoderConfig, LongRopeTakesItsFactorFromTheLengths) {
  const json four{1.0, 1.0, 2.0, 2.0};
  const auto spec = parse(
      "phi3", {{"original_max_position_embeddings", 16},
               {"rope_scaling", {{"type", "su"}, {"short_factor", four}, {"long_factor", four}}}});
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->rope.scaling, RopeScaling::LongRope);
  EXPECT_EQ(spec->rope.original_length, 16U);
  // sqrt(1 + ln(64 / 16) / ln(16)) = sqrt(1.5)
  EXPECT_DOUBLE_EQ(spec->rope.attention_factor, std::sqrt(1.5));
  EXPECT_EQ(spec->stop_ids, Ids{32000});
}

TEST(DecoderConfig, TheGenerationConfigsEndsStandForTheConfigs) {
  const auto config = config_of("llama", {{"eos_token_id", 7}});
  const auto ends = [&](const char* generation) {
    const auto spec = parse_decoder_config(config, generation);
    EXPECT_TRUE(spec) << spec.error().message;
    return spec ? spec->stop_ids : Ids();
  };
  EXPECT_EQ(ends(R"({"eos_token_id": [9, 8]})"), (Ids{8, 9}));
  EXPECT_EQ(ends(R"({"temperature": 0.6})"), Ids{7});
  EXPECT_EQ(ends(R"({"eos_token_id": null})"), Ids{7});
}

TEST(DecoderConfig, WhatIsNotComputedIsRefusedByName) {
  EXPECT_NE(
      error_of("bert", json::object()).find("a model of this family cannot generate here: bert"),
      std::string::npos);
  EXPECT_EQ(error_of("llama", {{"hidden_act", "mish"}}),
            "config.json: hidden_act is not computed: \"mish\"");
  EXPECT_EQ(error_of("llama", {{"rope_scaling", {{"type", "spiral"}}}}),
            "config.json: rope_type is not known: \"spiral\" (known are default, linear, dynamic, "
            "yarn, llama3, longrope)");
  EXPECT_EQ(error_of("llama", {{"architectures", {"LlamaForSequenceClassification"}}}),
            "config.json: architectures names no model that generates: "
            "\"LlamaForSequenceClassification\"");
  EXPECT_EQ(error_of("llama", {{"quantization_config", {{"bits", 4}}}}),
            "config.json: weights of a quantization_config are not read; a GGUF file's are");
  EXPECT_EQ(error_of("llama", {{"rms_norm_eps", 0}}),
            "config.json: the epsilon of the norms is not between 0 and 1: 0");
  EXPECT_NE(error_of("llama", {{"eos_token_id", "x"}}).find("eos_token_id"), std::string::npos);
  EXPECT_NE(error_of("phi3", {{"rope_scaling", {{"type", "longrope"}, {"short_factor", {1}}}}})
                .find("short_factor"),
            std::string::npos);
}

}  // namespace
}  // namespace muster

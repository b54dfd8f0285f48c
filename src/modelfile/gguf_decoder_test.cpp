#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "modelfile/gguf_file.h"
#include "modelfile/gguf_writer.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using Keys = std::function<void(GgufWriter&)>;

struct Tensor {
  std::string name;
  std::vector<std::uint64_t> shape;  // ggml's order
};

/// A file of two layers of width 32, four heads and two key-value heads (GPT-2: four), with F32
/// tensors.
class GgufDecoderTest : public testing::Test {
 protected:
  GgufDecoderTest()
      : path_(fs::path(testing::TempDir()) / ("decoder." + std::to_string(::getpid()) + ".gguf")) {}
  ~GgufDecoderTest() override { fs::remove(path_); }

  Result<DecoderSpec> read(const std::string& name, std::uint64_t more, const Keys& keys,
                           const std::vector<Tensor>& others = {}) {
    std::vector<Tensor> tensors{{"token_embd.weight", {32, 10}},
                                {"blk.0.attn_q.weight", {32, 32}},
                                {"blk.0.ffn_gate.weight", {32, 40}},
                                {"blk.1.attn_q.weight", {32, 32}}};
    tensors.insert(tensors.end(), others.begin(), others.end());
    GgufWriter writer;
    writer.header(tensors.size(), 7 + more).key("general.architecture", name);
    writer.key(name + ".block_count", 2U)
        .key(name + ".embedding_length", 32U)
        .key(name + ".feed_forward_length", 40U)
        .key(name + ".attention.head_count", 4U)
        .key(name + ".attention.head_count_kv", name == "gpt2" ? 4U : 2U)
        .key(name + ".context_length", 128U);
    keys(writer);
    std::uint64_t offset = 0;
    for (const auto& [tensor, shape] : tensors) {
      writer.tensor(tensor, shape, 0, offset);
      std::uint64_t size = sizeof(float);
      for (const auto extent : shape) size *= extent;
      offset += (size + 31) / 32 * 32;
    }
    // Every byte is 1: floats of 2.4e-38, positive and finite.
    EXPECT_TRUE(write_file_atomically(path_, writer.data(offset)));
    const auto file = GgufFile::open(path_);
    if (!file) return file.error();
    return file->decoder();
  }

  std::string error_of(const Result<DecoderSpec>& spec) {
    EXPECT_FALSE(spec);
    if (spec) return {};
    const auto prefix = path_.string() + ": ";
    EXPECT_TRUE(spec.error().message.starts_with(prefix)) << spec.error().message;
    return spec.error().message.substr(prefix.size());
  }

  const Keys rms_ = [](GgufWriter& writer) {
    writer.key("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  };
  fs::path path_;
};

TEST_F(GgufDecoderTest, LlamaTurnsPairsAndHasNoBias) {
  const auto spec = read("llama", 2, [&](GgufWriter& writer) {
    rms_(writer);
    writer.key("llama.rope.freq_base", 100000.0F);
  });
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->family, DecoderFamily::Llama);
  EXPECT_EQ(spec->naming, TensorNaming::Gguf);
  EXPECT_EQ(spec->vocab_size, 10U);
  EXPECT_EQ(spec->hidden_size, 32U);
  EXPECT_EQ(spec->layer_count, 2U);
  EXPECT_EQ(spec->head_count, 4U);
  EXPECT_EQ(spec->kv_head_count, 2U);
  EXPECT_EQ(spec->head_size, 8U);
  EXPECT_EQ(spec->intermediate_size, 40U);
  EXPECT_EQ(spec->length_max, 128U);
  EXPECT_EQ(spec->windows, (std::vector<std::uint32_t>{0, 0}));
  EXPECT_EQ(spec->rope.style, RopeStyle::Pairs);
  EXPECT_EQ(spec->rope.size, 8U);
  EXPECT_EQ(spec->rope.base, 100000.0);
  EXPECT_EQ(spec->rope.scaling, RopeScaling::None);
  EXPECT_EQ(spec->norm, NormKind::Rms);
  EXPECT_EQ(spec->norm_epsilon, double{1e-5F});
  EXPECT_DOUBLE_EQ(spec->attention_scale, 1 / std::sqrt(8.0));
  EXPECT_EQ(spec->activation, DecoderActivation::Silu);
  EXPECT_TRUE(spec->is_gated && spec->has_tied_head);
  EXPECT_FALSE(spec->has_query_bias || spec->has_output_bias || spec->has_mlp_bias);
  EXPECT_TRUE(spec->stop_ids.empty());  // the file has no tokenizer
}

TEST_F(GgufDecoderTest, ExpertsMakeItMixtral) {
  const auto spec = read("llama", 3, [&](GgufWriter& writer) {
    rms_(writer);
    writer.key("llama.expert_count", 8U).key("llama.expert_used_count", 2U);
  });
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->family, DecoderFamily::Mixtral);
  EXPECT_EQ(spec->expert_count, 8U);
  EXPECT_EQ(spec->experts_per_token, 2U);
}

TEST_F(GgufDecoderTest, BiasesAndTheHeadAreTheTensorsThatAreThere) {
  const auto spec =
      read("qwen2", 1,
           [](GgufWriter& writer) { writer.key("qwen2.attention.layer_norm_rms_epsilon", 1e-6F); },
           {{"blk.0.attn_q.bias", {32}}, {"output.weight", {32, 10}}});
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->family, DecoderFamily::Qwen2);
  EXPECT_EQ(spec->rope.style, RopeStyle::Halves);
  EXPECT_TRUE(spec->has_query_bias);
  EXPECT_FALSE(spec->has_tied_head);
}

TEST_F(GgufDecoderTest, FrequenciesOfATensorAreDivisorsAtEveryLength) {
  const auto spec = read("llama", 1, rms_, {{"rope_freqs.weight", {4}}});
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->rope.scaling, RopeScaling::LongRope);
  EXPECT_EQ(spec->rope.short_divisors.size(), 4U);
  EXPECT_EQ(spec->rope.short_divisors, spec->rope.long_divisors);
  EXPECT_EQ(spec->rope.attention_factor, 1.0);
}

// llama.cpp divides by both. Without a type a factor means linear.
TEST_F(GgufDecoderTest, FrequenciesOfATensorAndAScalingTogetherAreRefused) {
  const auto with = [&](std::uint64_t more, const Keys& keys) {
    return read("llama", 1 + more,
                [&](GgufWriter& writer) {
                  rms_(writer);
                  keys(writer);
                },
                {{"rope_freqs.weight", {4}}});
  };
  const auto linear =
      with(1, [](GgufWriter& writer) { writer.key("llama.rope.scaling.factor", 2.0F); });
  EXPECT_EQ(error_of(linear),
            "llama.rope.scaling.type together with frequencies in a tensor is not computed");
  EXPECT_EQ(linear.error().kind, ErrorKind::Unsupported);
  const auto yarn = with(2, [](GgufWriter& writer) {
    writer.key("llama.rope.scaling.type", "yarn").key("llama.rope.scaling.factor", 4.0F);
  });
  EXPECT_EQ(error_of(yarn),
            "llama.rope.scaling.type together with frequencies in a tensor is not computed");
  const auto none = with(2, [](GgufWriter& writer) {
    writer.key("llama.rope.scaling.type", "none").key("llama.rope.scaling.factor", 2.0F);
  });
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_EQ(none->rope.scaling, RopeScaling::LongRope);
}

TEST_F(GgufDecoderTest, Phi3ReadsBothListsAndTheLengthTheyMeetAt) {
  const auto spec = read("phi3", 4,
                         [](GgufWriter& writer) {
                           writer.key("phi3.attention.layer_norm_rms_epsilon", 1e-5F)
                               .key("phi3.rope.scaling.original_context_length", 64U)
                               .key("phi3.rope.scaling.attn_factor", 1.25F)
                               .key("phi3.attention.sliding_window", 50U);
                         },
                         {{"rope_factors_long.weight", {4}}, {"rope_factors_short.weight", {4}}});
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->rope.scaling, RopeScaling::LongRope);
  EXPECT_EQ(spec->rope.original_length, 64U);
  EXPECT_EQ(spec->rope.attention_factor, 1.25);
  EXPECT_EQ(spec->windows, (std::vector<std::uint32_t>{50, 50}));
}

// Plain frequencies would be computed in their place.
TEST_F(GgufDecoderTest, LongRopeWithoutItsListsIsRefused) {
  const auto with = [&](const std::vector<Tensor>& lists) {
    return read(
        "llama", 2,
        [&](GgufWriter& writer) {
          rms_(writer);
          writer.key("llama.rope.scaling.type", "longrope");
        },
        lists);
  };
  EXPECT_EQ(error_of(with({})),
            "llama.rope.scaling.type is longrope, and rope_factors_short.weight and "
            "rope_factors_long.weight are missing");
  const auto whole = with({{"rope_factors_long.weight", {4}}, {"rope_factors_short.weight", {4}}});
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->rope.scaling, RopeScaling::LongRope);
}

TEST_F(GgufDecoderTest, YarnMultipliesItsOwnAttentionFactor) {
  const auto spec = read("llama", 4, [&](GgufWriter& writer) {
    rms_(writer);
    writer.key("llama.rope.scaling.type", "yarn")
        .key("llama.rope.scaling.factor", 4.0F)
        .key("llama.rope.scaling.original_context_length", 32U);
  });
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->rope.scaling, RopeScaling::Yarn);
  EXPECT_EQ(spec->rope.original_length, 32U);
  EXPECT_DOUBLE_EQ(spec->rope.attention_factor, 0.1 * std::log(4.0) + 1);
}

// A config's attention_factor takes the place of 0.1 ln 4 + 1 = 1.13863, its attn_factor multiplies
// that; the converter writes one key for both.
TEST_F(GgufDecoderTest, FactorsOfYarnThatAreNotTheNaturalOnesAreRefused) {
  const auto with = [&](const char* name, float value) {
    return read("llama", 4, [&](GgufWriter& writer) {
      rms_(writer);
      writer.key("llama.rope.scaling.type", "yarn")
          .key("llama.rope.scaling.factor", 4.0F)
          .key(name, value);
    });
  };
  const auto usual = with("llama.rope.scaling.yarn_attn_factor", 1.1386294F);
  ASSERT_TRUE(usual) << usual.error().message;
  EXPECT_DOUBLE_EQ(usual->rope.attention_factor, 0.1 * std::log(4.0) + 1);
  EXPECT_TRUE(with("llama.rope.scaling.yarn_ext_factor", 1.0F));
  const auto other = with("llama.rope.scaling.yarn_attn_factor", 1.5F);
  EXPECT_EQ(error_of(other),
            "llama.rope.scaling.yarn_attn_factor is computed only as 1.13863: 1.5");
  EXPECT_EQ(other.error().kind, ErrorKind::Unsupported);
  EXPECT_EQ(error_of(with("llama.rope.scaling.yarn_ext_factor", 0.5F)),
            "llama.rope.scaling.yarn_ext_factor is computed only as 1: 0.5");
}

TEST_F(GgufDecoderTest, AFactorOfZeroStandsForNone) {
  for (const auto* type : {"none", "linear"}) {
    const auto spec = read("llama", 3, [&](GgufWriter& writer) {
      rms_(writer);
      writer.key("llama.rope.scaling.type", type).key("llama.rope.scaling.factor", 0.0F);
    });
    ASSERT_TRUE(spec) << spec.error().message;
    EXPECT_EQ(spec->rope.scaling, RopeScaling::None) << type;
    EXPECT_EQ(spec->rope.factor, 1.0) << type;
  }
  // The older of two keys for the same thing.
  const auto old = read("llama", 2, [&](GgufWriter& writer) {
    rms_(writer);
    writer.key("llama.rope.scale_linear", 0.0F);
  });
  ASSERT_TRUE(old) << old.error().message;
  EXPECT_EQ(old->rope.scaling, RopeScaling::None);
}

TEST_F(GgufDecoderTest, Gemma2HasCapsScalesAndWindowsInTurn) {
  const auto spec = read("gemma2", 3, [](GgufWriter& writer) {
    writer.key("gemma2.attention.layer_norm_rms_epsilon", 1e-6F)
        .key("gemma2.attention.sliding_window", 16U)
        .key("gemma2.final_logit_softcapping", 20.0F);
  });
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->attention_cap, 50.0);
  EXPECT_EQ(spec->logit_cap, 20.0);
  EXPECT_EQ(spec->norm_weight_offset, 0.0);  // the converter has added it
  EXPECT_TRUE(spec->has_post_norms);
  EXPECT_DOUBLE_EQ(spec->embedding_scale, std::sqrt(32.0));
  EXPECT_EQ(spec->activation, DecoderActivation::GeluTanh);
  EXPECT_EQ(spec->windows, (std::vector<std::uint32_t>{16, 0}));
}

// Its first conversions state no window, as they state no caps: the model has them all the same.
TEST_F(GgufDecoderTest, Gemma2HasAWindowWhereTheFileStatesNone) {
  const auto with = [&](std::uint64_t more, const Keys& keys) {
    return read("gemma2", 1 + more, [&](GgufWriter& writer) {
      writer.key("gemma2.attention.layer_norm_rms_epsilon", 1e-6F);
      keys(writer);
    });
  };
  const auto unstated = with(0, [](GgufWriter&) {});
  ASSERT_TRUE(unstated) << unstated.error().message;
  EXPECT_EQ(unstated->windows, (std::vector<std::uint32_t>{4096, 0}));
  const auto without =
      with(1, [](GgufWriter& writer) { writer.key("gemma2.attention.sliding_window", 0U); });
  ASSERT_TRUE(without) << without.error().message;
  EXPECT_EQ(without->windows, (std::vector<std::uint32_t>{0, 0}));
}

TEST_F(GgufDecoderTest, Gpt2HasATableOfPositions) {
  const Keys keys = [](GgufWriter& writer) {
    writer.key("gpt2.attention.layer_norm_epsilon", 1e-5F);
  };
  const auto spec = read("gpt2", 1, keys, {{"position_embd.weight", {32, 64}}});
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->rope.style, RopeStyle::None);
  EXPECT_EQ(spec->position_rows, 64U);
  EXPECT_EQ(spec->length_max, 64U);  // less than the 128 that the key states
  EXPECT_EQ(spec->norm, NormKind::Layer);
  EXPECT_FALSE(spec->is_gated);
  EXPECT_EQ(error_of(read("gpt2", 1, keys)),
            "the file holds no tensor of that name: position_embd.weight");
}

// The pass makes room for the heads, and their product has three times the hidden size: a file
// whose keys say otherwise would have it write behind its buffers.
TEST_F(GgufDecoderTest, HeadsThatDoNotMakeUpTheHiddenSizeAreRefused) {
  const std::vector<Tensor> positions{{"position_embd.weight", {32, 64}}};
  const auto narrow = read(
      "gpt2", 3,
      [](GgufWriter& writer) {
        writer.key("gpt2.attention.layer_norm_epsilon", 1e-5F)
            .key("gpt2.attention.key_length", 4U)
            .key("gpt2.attention.value_length", 4U);
      },
      positions);
  EXPECT_EQ(error_of(narrow),
            "4 heads of 4 and 4 key-value heads do not make up the hidden size: 32");
  // Its fixture has two key-value heads.
  const auto grouped = read("gptneox", 1, [](GgufWriter& writer) {
    writer.key("gptneox.attention.layer_norm_epsilon", 1e-5F);
  });
  EXPECT_EQ(error_of(grouped),
            "4 heads of 8 and 2 key-value heads do not make up the hidden size: 32");
}

TEST_F(GgufDecoderTest, AnEncoderUnderADecodersNameIsRefused) {
  EXPECT_EQ(error_of(read("llama", 2,
                          [&](GgufWriter& writer) {
                            rms_(writer);
                            writer.key("llama.attention.causal", false);
                          })),
            "a model whose tokens see those behind them is not computed: llama.attention.causal");
}

// The fixture counts two layers. What is no layer's name belongs to none.
TEST_F(GgufDecoderTest, ALayerThatIsNotCountedIsRefused) {
  const auto with = [&](const std::string& name) { return read("llama", 1, rms_, {{name, {32}}}); };
  for (const auto* name : {"blk.2.attn_q.weight", "blk.99999999999999999999.attn_q.weight"}) {
    const auto refused = with(name);
    ASSERT_FALSE(refused);
    EXPECT_EQ(error_of(refused), std::string("llama.block_count is 2, and \"") + name +
                                     "\" is of a layer behind them");
    EXPECT_EQ(refused.error().kind, ErrorKind::Corrupt);
  }
  for (const auto* name : {"blk.1.ffn_norm.weight", "blk.more.weight", "blk.7", "v.blk.7.weight"}) {
    const auto taken = with(name);
    EXPECT_TRUE(taken) << name << ": " << taken.error().message;
  }
}

TEST_F(GgufDecoderTest, WhatIsWrongWithItsTokensNamesTheFileOnce) {
  const auto spec = read("llama", 4, [&](GgufWriter& writer) {
    rms_(writer);
    writer.key("tokenizer.ggml.model", "gpt2")
        .key("tokenizer.ggml.tokens", std::vector<std::string>{"a"})
        .key("tokenizer.ggml.eos_token_id", 7U);
  });
  EXPECT_EQ(error_of(spec), "tokenizer.ggml.eos_token_id is not an id below 1");
}

TEST_F(GgufDecoderTest, WhatIsNotComputedIsRefusedByName) {
  EXPECT_EQ(error_of(read("opt", 0, [](GgufWriter&) {})),
            "general.architecture cannot be computed: \"opt\" (known are gemma2, gpt2, gptneox, "
            "llama, phi3, qwen2, qwen3)");
  EXPECT_EQ(error_of(read("llama", 0, [](GgufWriter&) {})),
            "llama.attention.layer_norm_rms_epsilon is missing");
  const auto with = [&](const Keys& keys) {
    return error_of(read("llama", 2, [&](GgufWriter& writer) {
      rms_(writer);
      keys(writer);
    }));
  };
  EXPECT_EQ(with([](GgufWriter& writer) { writer.key("llama.logit_scale", 2.0F); }),
            "what this key asks for is not computed: llama.logit_scale");
  EXPECT_EQ(with([](GgufWriter& writer) { writer.key("llama.rope.scaling.type", "spiral"); }),
            "llama.rope.scaling.type is not known: \"spiral\"");
  EXPECT_EQ(with([](GgufWriter& writer) { writer.key("llama.rope.freq_base", 0.0F); }),
            "the base of RoPE is not between 1 and 1e12: 0");
  EXPECT_EQ(with([](GgufWriter& writer) { writer.key("llama.rope.dimension_count", 7U); }),
            "the elements of a head that RoPE turns are not an even number up to 8: 7");
  EXPECT_EQ(with([](GgufWriter& writer) { writer.key("llama.attention.key_length", 16U); }),
            "heads whose keys and values differ in size are not computed");
  EXPECT_EQ(error_of(read("llama", 1, rms_, {{"rope_freqs.weight", {5}}})),
            "rope_freqs.weight is not F32 of 4 elements");
  EXPECT_EQ(error_of(read("llama", 1, rms_, {{"output.bias", {10}}})),
            "a head with a bias is not computed: output.bias");
}

}  // namespace
}  // namespace muster

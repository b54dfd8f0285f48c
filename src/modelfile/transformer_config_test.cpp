#include "modelfile/transformer_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "modelfile/model_description.h"

namespace muster {
namespace {

using nlohmann::json;

json llama() {
  return {{"model_type", "llama"}, {"hidden_size", 64},        {"num_hidden_layers", 4},
          {"vocab_size", 100},     {"num_attention_heads", 8}, {"intermediate_size", 128},
          {"dtype", "bfloat16"}};
}

json with(json config, const json& fields) {
  config.update(fields);
  return config;
}

ModelShape shape_of(const json& config) {
  const auto model = parse_transformer_config(config.dump());
  EXPECT_TRUE(model) << model.error().message;
  return model ? model->shape : ModelShape{};
}

Error error_of(const json& config) {
  const auto model = parse_transformer_config(config.dump());
  EXPECT_FALSE(model);
  return model ? Error{ErrorKind::Internal, ""} : model.error();
}

std::vector<std::uint32_t> windows_of(const json& config) {
  std::vector<std::uint32_t> windows;
  for (const auto& layer : shape_of(config).layers) {
    EXPECT_EQ(layer.attention == AttentionKind::SlidingWindow, layer.window > 0);
    windows.push_back(layer.window);
  }
  return windows;
}

using Windows = std::vector<std::uint32_t>;

TEST(TransformerConfig, HeadSizeComesFromItsKeyAndElseFromTheHiddenSize) {
  EXPECT_EQ(shape_of(llama()).layers[0].head_size, 8U);  // 64 / 8
  EXPECT_EQ(shape_of(with(llama(), {{"head_dim", 20}})).layers[0].head_size, 20U);
  EXPECT_EQ(shape_of(with(llama(), {{"head_dim", nullptr}})).layers[0].head_size, 8U);
  // Qwen3 and Gemma have a size of their own where the key is absent.
  const auto qwen3 = with(llama(), {{"model_type", "qwen3"}, {"num_key_value_heads", 2}});
  EXPECT_EQ(shape_of(qwen3).layers[0].head_size, 128U);
}

TEST(TransformerConfig, KeyValueHeadsThatAreNullAreAsManyAsHeads) {
  EXPECT_EQ(shape_of(llama()).layers[0].kv_head_count, 8U);
  const auto mistral = with(llama(), {{"model_type", "mistral"}, {"num_attention_heads", 16}});
  EXPECT_EQ(shape_of(mistral).layers[0].kv_head_count, 8U);  // absent: Mistral's own 8
  EXPECT_EQ(shape_of(with(mistral, {{"num_key_value_heads", nullptr}})).layers[0].kv_head_count,
            16U);
}

TEST(TransformerConfig, WindowsFollowTheFamilysPattern) {
  const auto family = [](const char* name) {
    return with(llama(), {{"model_type", name}, {"num_key_value_heads", 2}});
  };
  EXPECT_EQ(windows_of(with(family("llama"), {{"sliding_window", 16}})), Windows(4, 0));
  EXPECT_EQ(windows_of(with(family("mistral"), {{"sliding_window", 16}})), Windows(4, 16));
  EXPECT_EQ(windows_of(with(family("mistral"), {{"sliding_window", nullptr}})), Windows(4, 0));
  EXPECT_EQ(windows_of(family("mistral")), Windows(4, 4096));
  EXPECT_EQ(windows_of(with(family("phi3"), {{"sliding_window", 16}})), Windows(4, 16));
  EXPECT_EQ(windows_of(family("gemma2")), (Windows{4096, 0, 4096, 0}));
  EXPECT_EQ(
      windows_of(with(family("gemma3"), {{"sliding_window", 9}, {"sliding_window_pattern", 3}})),
      (Windows{9, 9, 0, 9}));
  // Qwen's window counts only where it is switched on, from max_window_layers on.
  const auto qwen = with(family("qwen2"), {{"sliding_window", 16}, {"max_window_layers", 3}});
  EXPECT_EQ(windows_of(qwen), Windows(4, 0));
  EXPECT_EQ(windows_of(with(qwen, {{"use_sliding_window", true}})), (Windows{0, 0, 0, 16}));
}

TEST(TransformerConfig, LayerTypesOverruleThePattern) {
  const auto types =
      json::array({"full_attention", "sliding_attention", "sliding_attention", "full_attention"});
  const auto gemma = with(llama(), {{"model_type", "gemma3_text"},
                                    {"num_key_value_heads", 2},
                                    {"sliding_window", 32},
                                    {"layer_types", types}});
  EXPECT_EQ(windows_of(gemma), (Windows{0, 32, 32, 0}));
  EXPECT_EQ(shape_of(gemma).family, "gemma3_text");
  auto other = gemma;
  other["layer_types"][2] = "linear_attention";
  EXPECT_EQ(error_of(other).kind, ErrorKind::Unsupported);
  EXPECT_NE(error_of(other).message.find("linear_attention"), std::string::npos);
  other["layer_types"] = json::array({"full_attention"});
  EXPECT_EQ(error_of(other).message,
            "config.json: layer_types must be a list of 4 names, not an array");
}

TEST(TransformerConfig, AGemmaThatLooksToBothSidesIsAnEncoder) {
  const auto shape = shape_of(with(llama(), {{"model_type", "gemma3_text"},
                                             {"num_key_value_heads", 2},
                                             {"sliding_window", 512},
                                             {"use_bidirectional_attention", true}}));
  EXPECT_EQ(shape.kind, ModelKind::Encoder);
  EXPECT_TRUE(shape.layers[0].is_encoder);
  EXPECT_EQ(shape.layers[0].window, 257U);  // 512 / 2 + 1
}

TEST(TransformerConfig, DeepSeekCachesOneLatentAToken) {
  const auto shape =
      shape_of({{"model_type", "deepseek_v3"}, {"hidden_size", 7168}, {"num_hidden_layers", 61}});
  ASSERT_EQ(shape.layers.size(), 61U);
  const auto& dense = shape.layers[2];
  EXPECT_EQ(dense.attention, AttentionKind::Latent);
  EXPECT_EQ(dense.latent_size, 512U);
  EXPECT_EQ(dense.rope_size, 64U);
  EXPECT_EQ(dense.head_size, 192U);
  EXPECT_EQ(dense.value_head_size, 128U);
  EXPECT_EQ(dense.intermediate_size, 18432U);
  EXPECT_EQ(dense.expert_count, 0U);
  const auto& sparse = shape.layers[3];
  EXPECT_EQ(sparse.intermediate_size, 2048U);
  EXPECT_EQ(sparse.expert_count, 256U);
  EXPECT_EQ(sparse.experts_per_token, 8U);
  EXPECT_EQ(sparse.shared_expert_count, 1U);
}

TEST(TransformerConfig, T5IsAnEncoderBeforeADecoder) {
  const json t5{{"model_type", "t5"},
                {"d_model", 64},
                {"num_layers", 2},
                {"num_heads", 6},
                {"d_kv", 16},
                {"num_decoder_layers", 3},
                {"feed_forward_proj", "gated-gelu"},
                {"architectures", {"T5ForConditionalGeneration"}}};
  const auto shape = shape_of(t5);
  EXPECT_EQ(shape.kind, ModelKind::EncoderDecoder);
  ASSERT_EQ(shape.layers.size(), 5U);
  EXPECT_TRUE(shape.layers[1].is_encoder);
  EXPECT_FALSE(shape.layers[2].is_encoder);
  EXPECT_TRUE(shape.layers[2].has_cross_attention);
  EXPECT_TRUE(shape.layers[2].is_gated);
  EXPECT_EQ(shape.layers[2].head_size, 16U);  // not 64 / 6
  EXPECT_EQ(shape.length_max, 0U);            // relative positions have no end
  const auto encoder = shape_of(with(t5, {{"architectures", {"T5EncoderModel"}}}));
  EXPECT_EQ(encoder.kind, ModelKind::Encoder);
  EXPECT_EQ(encoder.layers.size(), 2U);
  EXPECT_FALSE(encoder.has_head);
}

TEST(TransformerConfig, PositionsLeaveOutThePaddingsPart) {
  const json roberta{{"model_type", "roberta"},
                     {"hidden_size", 48},
                     {"num_hidden_layers", 2},
                     {"max_position_embeddings", 514},
                     {"pad_token_id", 1}};
  EXPECT_EQ(shape_of(roberta).length_max, 512U);
  EXPECT_EQ(shape_of(roberta).kind, ModelKind::Encoder);
  EXPECT_EQ(shape_of(with(roberta, {{"model_type", "mpnet"}})).length_max, 512U);
  EXPECT_EQ(shape_of(with(roberta, {{"model_type", "bert"}})).length_max, 514U);
  EXPECT_EQ(error_of(with(roberta, {{"max_position_embeddings", 2}})).message,
            "config.json: max_position_embeddings must be more than the positions left out, not 2");
}

TEST(TransformerConfig, TheFieldsOfATextConfigAreRead) {
  // As published for Gemma 3: what is the class's default is left out.
  const json gemma{{"model_type", "gemma3"},
                   {"architectures", {"Gemma3ForConditionalGeneration"}},
                   {"torch_dtype", "bfloat16"},
                   {"text_config",
                    {{"model_type", "gemma3_text"},
                     {"hidden_size", 2560},
                     {"intermediate_size", 10240},
                     {"num_hidden_layers", 34},
                     {"sliding_window", 1024}}}};
  const auto shape = shape_of(gemma);
  EXPECT_EQ(shape.layers.size(), 34U);
  EXPECT_EQ(shape.vocab_size, 262208U);
  EXPECT_EQ(shape.layers[0].head_count, 8U);
  EXPECT_EQ(shape.layers[0].kv_head_count, 4U);
  EXPECT_EQ(shape.layers[0].head_size, 256U);
  EXPECT_EQ(shape.layers[0].window, 1024U);
  EXPECT_EQ(shape.layers[5].window, 0U);
  EXPECT_EQ(shape.dtype, "bfloat16");
  EXPECT_TRUE(shape.has_tied_head);
  auto broken = gemma;
  broken["text_config"]["hidden_size"] = -1;
  EXPECT_EQ(error_of(broken).message,
            "config.json: text_config.hidden_size must be an integer of 1 to 1048576, not -1");
}

TEST(TransformerConfig, AnUnknownFamilyIsRefusedWithTheNearestOne) {
  EXPECT_EQ(error_of(with(llama(), {{"model_type", "qwen4"}})).message,
            "config.json: model_type is of no known family: \"qwen4\"; the nearest is qwen2");
  const auto far = error_of(with(llama(), {{"model_type", "rwkv"}}));
  EXPECT_EQ(far.kind, ErrorKind::Unsupported);
  EXPECT_NE(far.message.find("\"rwkv\" (known are bert, roberta,"), std::string::npos);
  EXPECT_EQ(error_of(with(llama(), {{"model_type", nullptr}})).message,
            "config.json: model_type is missing");
}

TEST(TransformerConfig, ImpossibleSizesAreNamed) {
  struct Case {
    json fields;
    std::string message;
  };
  const std::vector<Case> cases{
      {{{"num_hidden_layers", 2000000000}},
       "num_hidden_layers must be an integer of 1 to 2048, not 2000000000"},
      {{{"hidden_size", 1e30}}, "hidden_size must be an integer of 1 to 1048576, not 1e+30"},
      {{{"hidden_size", "64"}}, "hidden_size must be an integer of 1 to 1048576, not \"64\""},
      {{{"hidden_size", nullptr}}, "hidden_size is missing"},
      {{{"num_attention_heads", 0}}, "num_attention_heads must be an integer of 1 to 4096, not 0"},
      {{{"num_attention_heads", 7}}, "the hidden size is not a multiple of the heads: 64 and 7"},
      {{{"num_key_value_heads", 3}},
       "num_attention_heads is not a multiple of num_key_value_heads: 8 and 3"},
      {{{"architectures", "LlamaForCausalLM"}},
       "architectures must be a list of class names, not \"LlamaForCausalLM\""},
      {{{"dtype", 16}}, "dtype must be a string, not 16"},
      {{{"tie_word_embeddings", "no"}}, "tie_word_embeddings must be true or false, not \"no\""},
  };
  for (const auto& [fields, message] : cases) {
    SCOPED_TRACE(message);
    const auto error = error_of(with(llama(), fields));
    EXPECT_EQ(error.kind, ErrorKind::InvalidArgument);
    EXPECT_EQ(error.message, "config.json: " + message);
  }
}

TEST(TransformerConfig, ANestingThatNoConfigHasIsCorrupt) {
  const std::string deep(100, '[');
  const auto model = parse_transformer_config(R"({"x":)" + deep);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().message, "config.json: nested deeper than 64");
}

TEST(TransformerConfig, WhatAConfigAloneDoesNotDetermineIsRefused) {
  const auto error = [](const json& fields) {
    const auto model = describe_config(with(llama(), fields).dump());
    EXPECT_FALSE(model);
    return model ? Error{ErrorKind::Internal, ""} : model.error();
  };
  EXPECT_EQ(error({{"quantization_config", {{"quant_method", "awq"}}}}).message,
            "config.json: quantization_config: its tensors are read from the weight files only");
  EXPECT_EQ(error({{"architectures", {"LlamaForSequenceClassification"}}}).message,
            "config.json: architectures: LlamaForSequenceClassification: its tensors are read "
            "from the weight files only");
  EXPECT_EQ(error({{"dtype", "int4"}}).message,
            "config.json: dtype is none of float32, float16, bfloat16 and float64: int4");
}

TEST(TransformerConfig, TheLargestSizesEndInAnErrorAndNotInAnOverflow) {
  const auto model = describe_config(with(llama(), {{"hidden_size", 1048576},
                                                    {"intermediate_size", 1048576},
                                                    {"num_hidden_layers", 2048},
                                                    {"vocab_size", 67108864},
                                                    {"dtype", "float64"}})
                                         .dump());
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().message,
            "config.json: the sizes make a model of more than 1125899906842624 bytes");
}

// What the models' hubs state as their number of parameters.
TEST(TransformerConfig, PublishedModelsHaveTheirPublishedParameters) {
  struct Case {
    const char* config;
    std::uint64_t parameters;
  };
  const std::vector<Case> cases{
      {R"({"model_type":"bert","architectures":["BertModel"],"hidden_size":768,
           "num_hidden_layers":12})",
       109'482'240},
      {R"({"model_type":"roberta","architectures":["RobertaModel"],"hidden_size":768,
           "num_hidden_layers":12,"max_position_embeddings":514,"type_vocab_size":1})",
       124'645'632},
      {R"({"model_type":"gpt2","n_embd":768,"n_layer":12,"n_head":12})", 124'439'808},
      {R"({"model_type":"gpt_neox","hidden_size":4096,"num_hidden_layers":32,
           "num_attention_heads":32,"intermediate_size":16384})",
       6'857'302'016},
      {R"({"model_type":"opt","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,
           "ffn_dim":16384})",
       6'658'473'984},
      {R"({"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,
           "num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256})",
       8'030'261'248},
      {R"({"model_type":"mixtral","hidden_size":4096,"num_hidden_layers":32})", 46'702'792'704},
      {R"({"model_type":"qwen2","hidden_size":3584,"num_hidden_layers":28,
           "num_attention_heads":28,"num_key_value_heads":4,"intermediate_size":18944,
           "vocab_size":152064})",
       7'615'616'512},
      {R"({"model_type":"qwen3","hidden_size":1024,"num_hidden_layers":28,
           "num_attention_heads":16,"num_key_value_heads":8,"intermediate_size":3072,
           "tie_word_embeddings":true})",
       596'049'920},
      {R"({"model_type":"gemma2","hidden_size":3584,"num_hidden_layers":42,
           "num_attention_heads":16,"num_key_value_heads":8,"intermediate_size":14336})",
       9'241'705'984},
      {R"({"model_type":"gemma3","architectures":["Gemma3ForConditionalGeneration"],
           "text_config":{"hidden_size":2560,"intermediate_size":10240,"num_hidden_layers":34,
             "sliding_window":1024},
           "vision_config":{"hidden_size":1152,"image_size":896,"intermediate_size":4304,
             "num_hidden_layers":27,"patch_size":14,"vision_use_head":false}})",
       4'300'079'472},
      {R"({"model_type":"phi3","hidden_size":3072,"num_hidden_layers":32})", 3'821'079'552},
      {R"({"model_type":"deepseek_v2","hidden_size":2048,"num_hidden_layers":27,
           "num_attention_heads":16,"q_lora_rank":null,"intermediate_size":10944,
           "moe_intermediate_size":1408,"num_experts_per_tok":6,"first_k_dense_replace":1})",
       15'706'484'224},
      {R"({"model_type":"deepseek_v3","hidden_size":7168,"num_hidden_layers":61})",
       671'026'419'200},
      {R"({"model_type":"t5","d_model":512,"num_layers":6})", 60'506'624},
  };
  for (const auto& [config, parameters] : cases) {
    SCOPED_TRACE(config);
    const auto model = describe_config(config);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->stored_bytes(), parameters * 4);  // float32: no dtype is stated
  }
}

TEST(TransformerConfig, WithoutAStatedDtypeTensorsAreFloat32) {
  auto config = llama();
  config.erase("dtype");
  const auto model = describe_config(config.dump());
  ASSERT_TRUE(model);
  EXPECT_EQ(model->tensors[0].dtype, "F32");
  EXPECT_EQ(model->tensors[0].bytes, 100U * 64 * 4);
  EXPECT_EQ(model->shape.dtype, "");
}

}  // namespace
}  // namespace muster

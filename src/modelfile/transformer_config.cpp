// One config.json, with its family's defaults filled in. The same key may have several names,
// and an absent key a default that depends on the family, so all of it is resolved here; planner
// and decoder see numbers only. Every size is checked against a limit when it is read. A
// multimodal config keeps the language model's fields in an object of their own, and a few keys
// may stand in either.

#include "modelfile/transformer_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "modelfile/attention_windows.h"
#include "modelfile/family_table.h"
#include "modelfile/json_fields.h"
#include "modelfile/model_limits.h"
#include "modelfile/shown_name.h"

namespace muster {
namespace {

constexpr std::string_view kFile = "config.json";

Error unsupported(std::string message) {
  return Error{ErrorKind::Unsupported, fmt::format("{}: {}", kFile, message)};
}

Error invalid(std::string message) {
  return Error{ErrorKind::InvalidArgument, fmt::format("{}: {}", kFile, message)};
}

// Other names of the same architecture. Source: transformers 5.17, models/auto.
std::string_view family_name_of(std::string_view model_type) {
  if (model_type == "xlm-roberta" || model_type == "camembert") return "roberta";
  if (model_type == "gemma3_text") return "gemma3";
  return model_type;
}

Result<ModelFamily> parse_family(std::string_view model_type) {
  const auto name = family_name_of(model_type);
  for (const auto& traits : family_table()) {
    if (traits.model_type == name) return traits.family;
  }
  const auto known = known_model_types();
  const auto nearest = nearest_name(model_type, known);
  return unsupported(fmt::format("model_type is of no known family: {}{}", shown_name(model_type),
                                 nearest ? fmt::format("; the nearest is {}", *nearest)
                                         : fmt::format(" (known are {})", fmt::join(known, ", "))));
}

/// A field under its family's key or the usual one, else the family's default.
Result<std::uint32_t> size_of(const JsonFields& config, std::string_view key,
                              std::string_view usual, std::uint32_t max, std::uint32_t fallback) {
  const auto used = !config.has(key) && config.has(usual) ? usual : key;
  if (fallback == 0) return config.positive(used, max);
  return config.positive_or(used, max, fallback);
}

// `num_key_value_heads`: null means as many as heads; a missing key means the family's default.
Result<std::uint32_t> parse_kv_heads(const JsonFields& config, std::uint32_t heads,
                                     std::uint32_t fallback) {
  constexpr std::string_view kKey = "num_key_value_heads";
  const auto absent = config.states(kKey) || fallback == 0 ? heads : fallback;
  const auto kv_heads = MUSTER_TRY(config.positive_or(kKey, kHeadsMax, absent));
  if (heads % kv_heads == 0) return kv_heads;
  return invalid(
      fmt::format("num_attention_heads is not a multiple of {}: {} and {}", kKey, heads, kv_heads));
}

Result<std::uint32_t> parse_head_size(const JsonFields& config, std::string_view key,
                                      std::uint32_t hidden, std::uint32_t heads,
                                      std::uint32_t fallback) {
  if (!key.empty() && config.has(key)) return config.positive(key, kHeadWidthMax);
  if (fallback != 0) return fallback;
  if (hidden % heads == 0) return hidden / heads;
  return invalid(
      fmt::format("the hidden size is not a multiple of the heads: {} and {}", hidden, heads));
}

std::string_view stated_dtype_key(const JsonFields& config) {
  return config.has("dtype") ? "dtype" : "torch_dtype";
}

struct Architecture {
  std::string name;
  TaskHead task = TaskHead::LanguageModel;
};

// By the ending of the class's name, which transformers keeps uniform.
TaskHead task_of(std::string_view name) {
  for (const std::string_view ending :
       {"ForCausalLM", "ForMaskedLM", "LMHeadModel", "ForConditionalGeneration"}) {
    if (name.ends_with(ending)) return TaskHead::LanguageModel;
  }
  if (name.ends_with("DoubleHeadsModel")) return TaskHead::Other;
  return name.ends_with("Model") ? TaskHead::None : TaskHead::Other;
}

Result<Architecture> parse_architecture(const JsonFields& config, ModelFamily family) {
  const auto* list = config.find("architectures");
  if (list == nullptr || (list->is_array() && list->empty())) {
    return Architecture{{}, is_encoder_family(family) ? TaskHead::None : TaskHead::LanguageModel};
  }
  if (!list->is_array() || !list->front().is_string()) {
    return config.wrong("architectures", "a list of class names");
  }
  auto name = list->front().get<std::string>();
  const auto task = task_of(name);
  return Architecture{std::move(name), task};
}

Status parse_deepseek(const JsonFields& config, TransformerConfig& model, LayerShape& layer) {
  layer.attention = AttentionKind::Latent;
  layer.latent_size = MUSTER_TRY(config.positive_or("kv_lora_rank", kWidthMax, 512));
  layer.rope_size = MUSTER_TRY(config.positive_or("qk_rope_head_dim", kHeadWidthMax, 64));
  layer.head_size =
      layer.rope_size + MUSTER_TRY(config.positive_or("qk_nope_head_dim", kHeadWidthMax, 128));
  layer.value_head_size = MUSTER_TRY(config.positive_or("v_head_dim", kHeadWidthMax, 128));
  if (!config.states("q_lora_rank") || config.has("q_lora_rank")) {
    model.query_rank = MUSTER_TRY(config.positive_or("q_lora_rank", kWidthMax, 1536));
  }
  // The original code has layers of experts at other steps too; transformers has not.
  if (MUSTER_TRY(config.positive_or("moe_layer_freq", kLayersMax, 1)) != 1) {
    return unsupported("moe_layer_freq is not 1");
  }
  return Done{};
}

/// The layers of DeepSeek: dense ones first, then of experts.
Status parse_deepseek_experts(const JsonFields& config, TransformerConfig& model) {
  const bool is_v3 = model.family == ModelFamily::DeepseekV3;
  std::uint64_t dense_count = is_v3 ? 3 : 0;
  if (const auto* value = config.find("first_k_dense_replace")) {
    if (!value->is_number_unsigned()) return config.wrong("first_k_dense_replace", "an integer");
    dense_count = value->get<std::uint64_t>();
  }
  const auto width =
      MUSTER_TRY(config.positive_or("moe_intermediate_size", kWidthMax, is_v3 ? 2048 : 1407));
  const auto experts =
      MUSTER_TRY(config.positive_or("n_routed_experts", kExpertsMax, is_v3 ? 256 : 64));
  const auto shared = MUSTER_TRY(config.positive_or("n_shared_experts", 1U << 8, is_v3 ? 1 : 2));
  const auto chosen = MUSTER_TRY(is_v3 ? config.positive_or("num_experts_per_tok", kExpertsMax, 8)
                                       : config.positive("num_experts_per_tok", kExpertsMax));
  if (chosen > experts) return config.wrong("num_experts_per_tok", "at most n_routed_experts");
  for (std::size_t i = dense_count; i < model.shape.layers.size(); ++i) {
    auto& layer = model.shape.layers[i];
    layer.intermediate_size = width;
    layer.expert_count = experts;
    layer.shared_expert_count = shared;
    layer.experts_per_token = chosen;
  }
  return Done{};
}

Status parse_mixtral(const JsonFields& config, LayerShape& layer) {
  layer.expert_count = MUSTER_TRY(config.positive_or("num_local_experts", kExpertsMax, 8));
  layer.experts_per_token = MUSTER_TRY(config.positive_or("num_experts_per_tok", kExpertsMax, 2));
  if (layer.experts_per_token <= layer.expert_count) return Done{};
  return config.wrong("num_experts_per_tok", "at most num_local_experts");
}

// BERT, RoBERTa, MPNet and DistilBERT; the rows of a learned position table.
Status parse_encoder(const JsonFields& config, TransformerConfig& model) {
  auto& shape = model.shape;
  shape.kind = ModelKind::Encoder;
  model.has_query_bias = model.has_output_bias = model.has_mlp_bias = true;
  model.position_rows = shape.length_max;
  std::uint32_t first_position = 0;
  switch (model.family) {
    case ModelFamily::Bert:
      model.token_type_rows = MUSTER_TRY(config.positive_or("type_vocab_size", kLayersMax, 2));
      break;
    case ModelFamily::Roberta: {
      model.token_type_rows = MUSTER_TRY(config.positive_or("type_vocab_size", kLayersMax, 2));
      const auto* padding = config.find("pad_token_id");
      if (padding != nullptr &&
          (!padding->is_number_unsigned() || padding->get<std::uint64_t>() >= shape.vocab_size)) {
        return config.wrong("pad_token_id", "an id of the vocabulary");
      }
      first_position = 1 + (padding == nullptr ? 1U : padding->get<std::uint32_t>());
      break;
    }
    case ModelFamily::Mpnet:
      model.relative_buckets =
          MUSTER_TRY(config.positive_or("relative_attention_num_buckets", kLayersMax, 32));
      first_position = 2;  // after the padding id, which its code fixes at 1
      break;
    default:
      break;
  }
  for (const auto* key : {"is_decoder", "add_cross_attention"}) {
    if (MUSTER_TRY(config.boolean_or(key, false))) {
      return unsupported(fmt::format("the model is not an encoder: {} is true", key));
    }
  }
  if (shape.length_max <= first_position) {
    return config.wrong("max_position_embeddings", "more than the positions left out");
  }
  shape.length_max -= first_position;
  return Done{};
}

Status parse_opt(const JsonFields& config, TransformerConfig& model) {
  const bool has_bias = MUSTER_TRY(config.boolean_or("enable_bias", true));
  model.has_query_bias = model.has_output_bias = model.has_mlp_bias = has_bias;
  model.has_norm_weights = MUSTER_TRY(config.boolean_or("layer_norm_elementwise_affine", true));
  model.has_final_norm = MUSTER_TRY(config.boolean_or("do_layer_norm_before", true)) &&
                         !MUSTER_TRY(config.boolean_or("_remove_final_layer_norm", false));
  model.embedding_size =
      MUSTER_TRY(config.positive_or("word_embed_proj_dim", kWidthMax, model.shape.hidden_size));
  // The table has two rows before position 0. Source: modeling_opt.py,
  // OPTLearnedPositionalEmbedding.
  model.position_rows = model.shape.length_max + 2;
  return Done{};
}

// Biases, and what else of a decoder only its tensors depend on.
Status parse_decoder(const JsonFields& config, TransformerConfig& model) {
  const auto bias = [&](std::string_view key, bool fallback) {
    return config.boolean_or(key, fallback);
  };
  switch (model.family) {
    case ModelFamily::Gpt2:
      if (MUSTER_TRY(bias("add_cross_attention", false))) {
        return unsupported("add_cross_attention is true");
      }
      model.has_query_bias = model.has_output_bias = model.has_mlp_bias = true;
      model.position_rows = model.shape.length_max;
      return Done{};
    case ModelFamily::GptNeox:
      model.has_query_bias = model.has_output_bias = MUSTER_TRY(bias("attention_bias", true));
      model.has_mlp_bias = true;
      return Done{};
    case ModelFamily::Opt:
      return parse_opt(config, model);
    case ModelFamily::Qwen2:
      model.has_query_bias = true;
      return Done{};
    case ModelFamily::Llama:
    case ModelFamily::DeepseekV2:
      model.has_mlp_bias = MUSTER_TRY(bias("mlp_bias", false));
      [[fallthrough]];
    case ModelFamily::Qwen3:
    case ModelFamily::Gemma2:
    case ModelFamily::Gemma3:
    case ModelFamily::DeepseekV3:
      model.has_query_bias = model.has_output_bias = MUSTER_TRY(bias("attention_bias", false));
      return Done{};
    default:
      return Done{};
  }
}

/// The layer that all layers of the model are like.
Result<LayerShape> parse_layer(const JsonFields& config, TransformerConfig& model) {
  const auto& traits = family_traits(model.family);
  const auto& defaults = traits.defaults;
  const FamilyKeys usual;
  const auto hidden = model.shape.hidden_size;
  LayerShape layer;
  layer.is_encoder = is_encoder_family(model.family);
  layer.head_count =
      MUSTER_TRY(size_of(config, traits.keys.heads, usual.heads, kHeadsMax, defaults.heads));
  layer.intermediate_size =
      MUSTER_TRY(size_of(config, traits.keys.intermediate, usual.intermediate, kWidthMax,
                         defaults.intermediate == 0 ? 4 * hidden : defaults.intermediate));
  layer.is_gated = model.family >= ModelFamily::Llama && model.family != ModelFamily::T5;
  layer.kv_head_count = layer.head_count;
  const bool is_deepseek =
      model.family == ModelFamily::DeepseekV2 || model.family == ModelFamily::DeepseekV3;
  if (is_deepseek) {
    MUSTER_TRY(parse_deepseek(config, model, layer));
    return layer;
  }
  if (model.family >= ModelFamily::Llama && model.family != ModelFamily::T5) {
    layer.kv_head_count = MUSTER_TRY(parse_kv_heads(config, layer.head_count, defaults.kv_heads));
  }
  // The families before Llama split the hidden size: their code reads no head_dim.
  const std::string_view head_key = model.family == ModelFamily::T5      ? "d_kv"
                                    : model.family >= ModelFamily::Llama ? "head_dim"
                                                                         : "";
  layer.head_size =
      MUSTER_TRY(parse_head_size(config, head_key, hidden, layer.head_count, defaults.head_size));
  layer.value_head_size = layer.head_size;
  if (model.family == ModelFamily::Mixtral) MUSTER_TRY(parse_mixtral(config, layer));
  return layer;
}

// An encoder of `layers` blocks, then a decoder unless the class is the encoder alone.
Status parse_t5(const JsonFields& config, TransformerConfig& model, LayerShape layer,
                std::uint32_t layers) {
  const auto projection = MUSTER_TRY(config.text_or("feed_forward_proj", "relu"));
  layer.is_gated = projection.starts_with("gated-");
  model.relative_buckets =
      MUSTER_TRY(config.positive_or("relative_attention_num_buckets", kLayersMax, 32));
  model.is_encoder_only = model.architecture == "T5EncoderModel";
  layer.is_encoder = true;
  model.shape.layers.assign(layers, layer);
  if (model.is_encoder_only) {
    model.shape.kind = ModelKind::Encoder;
    return Done{};
  }
  model.shape.kind = ModelKind::EncoderDecoder;
  const auto decoder_layers =
      MUSTER_TRY(config.positive_or("num_decoder_layers", kLayersMax, layers));
  layer.is_encoder = false;
  layer.has_cross_attention = true;
  model.shape.layers.insert(model.shape.layers.end(), decoder_layers, layer);
  return Done{};
}

// Layers are first all alike; windows and experts then change single ones.
Status parse_layers(const JsonFields& config, TransformerConfig& model) {
  const auto layers = MUSTER_TRY(
      size_of(config, family_traits(model.family).keys.layers, FamilyKeys().layers, kLayersMax, 0));
  auto layer = MUSTER_TRY(parse_layer(config, model));
  if (model.family == ModelFamily::T5) return parse_t5(config, model, layer, layers);
  if (is_encoder_family(model.family)) {
    model.shape.layers.assign(layers, layer);
    return parse_encoder(config, model);
  }
  MUSTER_TRY(parse_decoder(config, model));
  // A Gemma that looks to both sides is an encoder: nothing is cached.
  const bool is_gemma = model.family == ModelFamily::Gemma2 || model.family == ModelFamily::Gemma3;
  if (is_gemma && MUSTER_TRY(config.boolean_or("use_bidirectional_attention", false))) {
    model.shape.kind = ModelKind::Encoder;
    layer.is_encoder = true;
  }
  model.shape.layers.assign(layers, layer);
  const auto windows = MUSTER_TRY(parse_windows(config, model.family, layers));
  for (std::size_t i = 0; i < layers; ++i) {
    auto& each = model.shape.layers[i];
    each.window = windows[i];
    if (each.window > 0) each.attention = AttentionKind::SlidingWindow;
  }
  if (layer.attention != AttentionKind::Latent) return Done{};
  model.dense_intermediate = layer.intermediate_size;
  return parse_deepseek_experts(config, model);
}

// Source: transformers 5.17, configuration_siglip.py, SiglipVisionConfig.
Result<VisionConfig> parse_vision(const JsonFields& config) {
  VisionConfig vision;
  vision.layer_count = MUSTER_TRY(config.positive_or("num_hidden_layers", kLayersMax, 12));
  vision.hidden_size = MUSTER_TRY(config.positive_or("hidden_size", kWidthMax, 768));
  vision.intermediate_size = MUSTER_TRY(config.positive_or("intermediate_size", kWidthMax, 3072));
  vision.channel_count = MUSTER_TRY(config.positive_or("num_channels", 1U << 8, 3));
  vision.image_size = MUSTER_TRY(config.positive_or("image_size", 1U << 14, 224));
  vision.patch_size = MUSTER_TRY(config.positive_or("patch_size", 1U << 10, 16));
  vision.has_pooling_head = MUSTER_TRY(config.boolean_or("vision_use_head", true));
  return vision;
}

Status parse_dimensions(const JsonFields& config, TransformerConfig& model) {
  const auto& traits = family_traits(model.family);
  const FamilyKeys usual;
  auto& shape = model.shape;
  shape.hidden_size = MUSTER_TRY(size_of(config, traits.keys.hidden, usual.hidden, kWidthMax, 0));
  shape.vocab_size = MUSTER_TRY(config.positive_or("vocab_size", kRowsMax, traits.defaults.vocab));
  if (traits.defaults.positions != 0 || config.has(traits.keys.positions)) {
    shape.length_max = MUSTER_TRY(size_of(config, traits.keys.positions, usual.positions, kRowsMax,
                                          traits.defaults.positions));
  }
  return parse_layers(config, model);
}

}  // namespace

Result<TransformerConfig> parse_transformer_config(std::string_view text) {
  const auto config = MUSTER_TRY(JsonFields::parse(std::string(kFile), text));
  const auto model_type = MUSTER_TRY(config.text_or("model_type", ""));
  if (model_type.empty()) return config.wrong("model_type", "the name of a model family");

  TransformerConfig model;
  model.family = MUSTER_TRY(parse_family(model_type));
  auto architecture = MUSTER_TRY(parse_architecture(config, model.family));
  model.architecture = std::move(architecture.name);
  model.task = architecture.task;
  model.is_quantised = config.has("quantization_config");

  // Multimodal models keep the language model's fields in an object of their own.
  model.is_nested = config.has("text_config");
  std::optional<JsonFields> inner;
  if (model.is_nested) inner.emplace(MUSTER_TRY(config.inner("text_config")));
  const auto& fields = inner ? *inner : config;
  if (model.is_nested && model.family != ModelFamily::Gemma3) {
    return unsupported(fmt::format("a text_config within {} is not known", model_type));
  }
  if (model.is_nested && config.has("vision_config")) {
    const auto vision = MUSTER_TRY(config.inner("vision_config"));
    model.vision = MUSTER_TRY(parse_vision(vision));
  }

  model.shape.family = model_type;
  const auto& stating = config.has("dtype") || config.has("torch_dtype") ? config : fields;
  model.shape.dtype = MUSTER_TRY(stating.text_or(stated_dtype_key(stating), ""));
  const auto& tying = config.has("tie_word_embeddings") ? config : fields;
  model.is_tied = MUSTER_TRY(
      tying.boolean_or("tie_word_embeddings", family_traits(model.family).defaults.is_tied));
  MUSTER_TRY(parse_dimensions(fields, model));
  model.shape.has_head = model.task == TaskHead::LanguageModel;
  model.shape.has_tied_head = model.shape.has_head && model.is_tied;
  return model;
}

std::vector<std::string> known_model_types() {
  std::vector<std::string> names;
  for (const auto& traits : family_table()) names.emplace_back(traits.model_type);
  return names;
}

}  // namespace muster

// Llama and the families that follow its names: they differ by what a layer adds or fuses. Phi-3
// fuses projections into one matrix, Qwen 3 and Gemma 3 norm the heads, Gemma norms twice around
// each part, Mixtral and DeepSeek have experts, and DeepSeek compresses keys and values. One
// walk over the layers covers all of them; what differs is asked of the family where it matters.
// Source: transformers 5.17, modeling_*.py of each family.

#include <fmt/format.h>

#include "modelfile/config_tensors.h"

namespace muster {
namespace {

bool is_gemma(ModelFamily family) {
  return family == ModelFamily::Gemma2 || family == ModelFamily::Gemma3;
}

void add_attention(const TransformerConfig& config, const LayerShape& layer,
                   TensorBuilder& builder) {
  const std::uint64_t hidden = config.shape.hidden_size;
  const std::uint64_t queries = std::uint64_t{layer.head_count} * layer.head_size;
  const std::uint64_t keys = std::uint64_t{layer.kv_head_count} * layer.head_size;
  const bool has_bias = config.has_query_bias;
  if (config.family == ModelFamily::Phi3) {
    builder.linear("self_attn.qkv_proj", queries + 2 * keys, hidden, false);
  } else {
    builder.linear("self_attn.q_proj", queries, hidden, has_bias);
    builder.linear("self_attn.k_proj", keys, hidden, has_bias);
    builder.linear("self_attn.v_proj", keys, hidden, has_bias);
  }
  builder.linear("self_attn.o_proj", hidden, queries, config.has_output_bias);
  if (config.family == ModelFamily::Qwen3 || config.family == ModelFamily::Gemma3) {
    builder.norm("self_attn.q_norm", layer.head_size, false);
    builder.norm("self_attn.k_norm", layer.head_size, false);
  }
}

// Multi-head latent attention: queries and keys go through low ranks, keys and values share one.
void add_latent_attention(const TransformerConfig& config, const LayerShape& layer,
                          TensorBuilder& builder) {
  const std::uint64_t hidden = config.shape.hidden_size;
  const std::uint64_t heads = layer.head_count;
  const std::uint64_t query_width = heads * layer.head_size;
  const bool has_bias = config.has_query_bias;
  if (config.query_rank == 0) {
    builder.linear("self_attn.q_proj", query_width, hidden, false);
  } else {
    builder.linear("self_attn.q_a_proj", config.query_rank, hidden, has_bias);
    builder.norm("self_attn.q_a_layernorm", config.query_rank, false);
    builder.linear("self_attn.q_b_proj", query_width, config.query_rank, false);
  }
  builder.linear("self_attn.kv_a_proj_with_mqa", std::uint64_t{layer.latent_size} + layer.rope_size,
                 hidden, has_bias);
  builder.norm("self_attn.kv_a_layernorm", layer.latent_size, false);
  // Keys without their rotary part, and values.
  const std::uint64_t unrolled = std::uint64_t{layer.head_size} - layer.rope_size;
  builder.linear("self_attn.kv_b_proj", heads * (unrolled + layer.value_head_size),
                 layer.latent_size, false);
  builder.linear("self_attn.o_proj", hidden, heads * layer.value_head_size, config.has_output_bias);
}

void add_gated(std::string_view name, std::uint64_t inner, std::uint64_t hidden, bool has_bias,
               TensorBuilder& builder) {
  builder.linear(fmt::format("{}.gate_proj", name), inner, hidden, has_bias);
  builder.linear(fmt::format("{}.up_proj", name), inner, hidden, has_bias);
  builder.linear(fmt::format("{}.down_proj", name), hidden, inner, has_bias);
}

// All experts of a layer are two tensors. Source: transformers 5.17, MixtralExperts.
void add_experts(const TransformerConfig& config, const LayerShape& layer, TensorBuilder& builder) {
  const std::uint64_t hidden = config.shape.hidden_size;
  const std::uint64_t experts = layer.expert_count;
  const std::uint64_t inner = layer.intermediate_size;
  builder.add("mlp.gate.weight", {experts, hidden});
  if (config.family == ModelFamily::DeepseekV3) {
    // Source: modeling_deepseek_v3.py, _keep_in_fp32_modules_strict.
    if (config.shape.dtype.ends_with("float16")) {
      builder.add_float32("mlp.gate.e_score_correction_bias", {experts});
    } else {
      builder.add("mlp.gate.e_score_correction_bias", {experts});
    }
  }
  builder.add("mlp.experts.gate_up_proj", {experts, 2 * inner, hidden});
  builder.add("mlp.experts.down_proj", {experts, hidden, inner});
  if (layer.shared_expert_count > 0) {
    add_gated("mlp.shared_experts", inner * layer.shared_expert_count, hidden, config.has_mlp_bias,
              builder);
  }
}

void add_feed_forward(const TransformerConfig& config, const LayerShape& layer,
                      TensorBuilder& builder) {
  const std::uint64_t hidden = config.shape.hidden_size;
  const std::uint64_t inner = layer.intermediate_size;
  if (layer.expert_count > 0) return add_experts(config, layer, builder);
  if (config.family == ModelFamily::Phi3) {
    builder.linear("mlp.gate_up_proj", 2 * inner, hidden, false);
    builder.linear("mlp.down_proj", hidden, inner, false);
    return;
  }
  add_gated("mlp", inner, hidden, config.has_mlp_bias, builder);
}

void add_vision_block(const VisionConfig& vision, TensorBuilder& builder) {
  const std::uint64_t width = vision.hidden_size;
  builder.norm("layer_norm1", width, true);
  for (const auto* name : {"k_proj", "v_proj", "q_proj", "out_proj"}) {
    builder.linear(fmt::format("self_attn.{}", name), width, width, true);
  }
  builder.norm("layer_norm2", width, true);
  builder.linear("mlp.fc1", vision.intermediate_size, width, true);
  builder.linear("mlp.fc2", width, vision.intermediate_size, true);
}

}  // namespace

void add_llama_tensors(const TransformerConfig& config, TensorBuilder& builder) {
  const auto base = builder.prefix();
  const std::uint64_t hidden = config.shape.hidden_size;
  builder.add("embed_tokens.weight", {config.shape.vocab_size, hidden});
  for (std::size_t i = 0; i < config.shape.layers.size(); ++i) {
    const auto& layer = config.shape.layers[i];
    builder.set_prefix(fmt::format("{}layers.{}.", base, i));
    if (layer.attention == AttentionKind::Latent) {
      add_latent_attention(config, layer, builder);
    } else {
      add_attention(config, layer, builder);
    }
    add_feed_forward(config, layer, builder);
    builder.norm("input_layernorm", hidden, false);
    builder.norm("post_attention_layernorm", hidden, false);
    if (is_gemma(config.family)) {
      builder.norm("pre_feedforward_layernorm", hidden, false);
      builder.norm("post_feedforward_layernorm", hidden, false);
    }
  }
  builder.set_prefix(base);
  builder.norm("norm", hidden, false);
}

// Source: transformers 5.17, modeling_siglip.py, SiglipVisionModel, and modeling_gemma3.py,
// Gemma3MultiModalProjector.
void add_vision_tensors(const TransformerConfig& config, TensorBuilder& builder) {
  const auto& vision = config.vision;
  const std::uint64_t width = vision.hidden_size;
  const std::uint64_t side = vision.image_size / vision.patch_size;
  const std::string tower = "model.vision_tower.";
  builder.set_prefix(tower);
  builder.add("embeddings.patch_embedding.weight",
              {width, vision.channel_count, vision.patch_size, vision.patch_size});
  builder.add("embeddings.patch_embedding.bias", {width});
  builder.add("embeddings.position_embedding.weight", {side * side, width});
  for (std::uint32_t i = 0; i < vision.layer_count; ++i) {
    builder.set_prefix(fmt::format("{}encoder.layers.{}.", tower, i));
    add_vision_block(vision, builder);
  }
  builder.set_prefix(tower);
  builder.norm("post_layernorm", width, true);
  if (vision.has_pooling_head) {
    builder.set_prefix(tower + "head.");
    builder.add("probe", {1, 1, width});
    builder.add("attention.in_proj_weight", {3 * width, width});
    builder.add("attention.in_proj_bias", {3 * width});
    builder.linear("attention.out_proj", width, width, true);
    builder.norm("layernorm", width, true);
    builder.linear("mlp.fc1", vision.intermediate_size, width, true);
    builder.linear("mlp.fc2", width, vision.intermediate_size, true);
  }
  builder.set_prefix("model.multi_modal_projector.");
  builder.add("mm_input_projection_weight", {width, config.shape.hidden_size});
  builder.add("mm_soft_emb_norm.weight", {width});
}

}  // namespace muster

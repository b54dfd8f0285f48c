// Encoders, GPT-2, GPT-NeoX, OPT and T5. Each of these families has its own names and its own
// habits with biases, so they share little beyond the frame. The BERT family is the exception:
// its four members differ in names only, and those stand in a table. Shapes are [out, in] but
// for GPT-2, whose Conv1D keeps the transpose.
// Source: transformers 5.17, modeling_*.py of each family.

#include <fmt/format.h>

#include "modelfile/config_tensors.h"

namespace muster {
namespace {

// A block's names begin with `list`.<index>.
std::string block_prefix(const std::string& base, std::string_view list, std::size_t index) {
  return fmt::format("{}{}.{}.", base, list, index);
}

struct EncoderNames {
  std::string_view list, query, key, value, output, attention_norm, up, down, norm;
};

EncoderNames encoder_names(ModelFamily family) {
  switch (family) {
    case ModelFamily::Mpnet:
      return {"encoder.layer",      "attention.attn.q", "attention.attn.k",
              "attention.attn.v",   "attention.attn.o", "attention.LayerNorm",
              "intermediate.dense", "output.dense",     "output.LayerNorm"};
    case ModelFamily::DistilBert:
      return {"transformer.layer", "attention.q_lin",   "attention.k_lin",
              "attention.v_lin",   "attention.out_lin", "sa_layer_norm",
              "ffn.lin1",          "ffn.lin2",          "output_layer_norm"};
    default:
      return {"encoder.layer",        "attention.self.query",   "attention.self.key",
              "attention.self.value", "attention.output.dense", "attention.output.LayerNorm",
              "intermediate.dense",   "output.dense",           "output.LayerNorm"};
  }
}

void add_gpt2_block(std::uint64_t hidden, std::uint64_t inner, TensorBuilder& builder) {
  // Conv1D keeps its weight as [in, out]. Source: transformers 5.17, pytorch_utils.py.
  const auto conv = [&](std::string_view name, std::uint64_t in, std::uint64_t out) {
    builder.add(fmt::format("{}.weight", name), {in, out});
    builder.add(fmt::format("{}.bias", name), {out});
  };
  builder.norm("ln_1", hidden, true);
  conv("attn.c_attn", hidden, 3 * hidden);
  conv("attn.c_proj", hidden, hidden);
  builder.norm("ln_2", hidden, true);
  conv("mlp.c_fc", hidden, inner);
  conv("mlp.c_proj", inner, hidden);
}

void add_neox_block(const TransformerConfig& config, std::uint64_t inner, TensorBuilder& builder) {
  const std::uint64_t hidden = config.shape.hidden_size;
  builder.norm("input_layernorm", hidden, true);
  builder.norm("post_attention_layernorm", hidden, true);
  builder.linear("attention.query_key_value", 3 * hidden, hidden, config.has_query_bias);
  builder.linear("attention.dense", hidden, hidden, config.has_output_bias);
  builder.linear("mlp.dense_h_to_4h", inner, hidden, true);
  builder.linear("mlp.dense_4h_to_h", hidden, inner, true);
}

void add_opt_block(const TransformerConfig& config, std::uint64_t inner, TensorBuilder& builder) {
  const std::uint64_t hidden = config.shape.hidden_size;
  for (const auto* name : {"k_proj", "v_proj", "q_proj", "out_proj"}) {
    builder.linear(fmt::format("self_attn.{}", name), hidden, hidden, config.has_query_bias);
  }
  if (config.has_norm_weights) builder.norm("self_attn_layer_norm", hidden, true);
  builder.linear("fc1", inner, hidden, config.has_mlp_bias);
  builder.linear("fc2", hidden, inner, config.has_mlp_bias);
  if (config.has_norm_weights) builder.norm("final_layer_norm", hidden, true);
}

// OPT-350m has a table narrower than its hidden size; two projections join them, one before the
// layers and one behind.
void add_opt_tensors(const TransformerConfig& config, TensorBuilder& builder) {
  const auto base = builder.prefix() + "decoder.";
  const std::uint64_t hidden = config.shape.hidden_size;
  const std::uint64_t narrow = config.embedding_size;
  builder.set_prefix(base);
  builder.add("embed_tokens.weight", {config.shape.vocab_size, narrow});
  builder.add("embed_positions.weight", {config.position_rows, hidden});
  if (narrow != hidden) builder.linear("project_in", hidden, narrow, false);
  for (std::size_t i = 0; i < config.shape.layers.size(); ++i) {
    builder.set_prefix(block_prefix(base, "layers", i));
    add_opt_block(config, config.shape.layers[i].intermediate_size, builder);
  }
  builder.set_prefix(base);
  if (config.has_final_norm && config.has_norm_weights) {
    builder.norm("final_layer_norm", hidden, true);
  }
  if (narrow != hidden) builder.linear("project_out", narrow, hidden, false);
}

void add_t5_attention(const LayerShape& layer, std::uint64_t hidden, std::string_view name,
                      TensorBuilder& builder) {
  const std::uint64_t inner = std::uint64_t{layer.head_count} * layer.head_size;
  for (const auto* projection : {"q", "k", "v"}) {
    builder.linear(fmt::format("{}.{}", name, projection), inner, hidden, false);
  }
  builder.linear(fmt::format("{}.o", name), hidden, inner, false);
}

void add_t5_feed_forward(const TransformerConfig& config, const LayerShape& layer,
                         std::string_view name, TensorBuilder& builder) {
  const std::uint64_t hidden = config.shape.hidden_size;
  const std::uint64_t inner = layer.intermediate_size;
  if (layer.is_gated) {
    builder.linear(fmt::format("{}.wi_0", name), inner, hidden, false);
    builder.linear(fmt::format("{}.wi_1", name), inner, hidden, false);
  } else {
    builder.linear(fmt::format("{}.wi", name), inner, hidden, false);
  }
  // T5 overflows in float16 here, so that transformers loads this matrix in float32.
  // Source: modeling_t5.py, _keep_in_fp32_modules; modeling_utils.py, _get_dtype_plan.
  const auto weight = fmt::format("{}.wo.weight", name);
  if (config.shape.dtype.ends_with("float16") && !config.shape.dtype.ends_with("bfloat16")) {
    builder.add_float32(weight, {hidden, inner});
  } else {
    builder.add(weight, {hidden, inner});
  }
}

}  // namespace

void add_encoder_tensors(const TransformerConfig& config, TensorBuilder& builder) {
  const auto base = builder.prefix();
  const std::uint64_t hidden = config.shape.hidden_size;
  const auto names = encoder_names(config.family);
  builder.set_prefix(base + "embeddings.");
  builder.add("word_embeddings.weight", {config.shape.vocab_size, hidden});
  builder.add("position_embeddings.weight", {config.position_rows, hidden});
  if (config.token_type_rows > 0) {
    builder.add("token_type_embeddings.weight", {config.token_type_rows, hidden});
  }
  builder.norm("LayerNorm", hidden, true);
  builder.set_prefix(base);
  if (config.relative_buckets > 0) {
    builder.add("encoder.relative_attention_bias.weight",
                {config.relative_buckets, config.shape.layers.front().head_count});
  }
  for (std::size_t i = 0; i < config.shape.layers.size(); ++i) {
    const std::uint64_t inner = config.shape.layers[i].intermediate_size;
    builder.set_prefix(block_prefix(base, names.list, i));
    for (const auto name : {names.query, names.key, names.value, names.output}) {
      builder.linear(name, hidden, hidden, true);
    }
    builder.norm(names.attention_norm, hidden, true);
    builder.linear(names.up, inner, hidden, true);
    builder.linear(names.down, hidden, inner, true);
    builder.norm(names.norm, hidden, true);
  }
  builder.set_prefix(base);
  // The class with a head has no pooler, the base model has; DistilBERT never.
  if (config.task == TaskHead::None && config.family != ModelFamily::DistilBert) {
    builder.linear("pooler.dense", hidden, hidden, true);
  }
}

void add_gpt_tensors(const TransformerConfig& config, TensorBuilder& builder) {
  if (config.family == ModelFamily::Opt) return add_opt_tensors(config, builder);
  const bool is_gpt2 = config.family == ModelFamily::Gpt2;
  const auto base = builder.prefix();
  const std::uint64_t hidden = config.shape.hidden_size;
  builder.add(is_gpt2 ? "wte.weight" : "embed_in.weight", {config.shape.vocab_size, hidden});
  if (is_gpt2) builder.add("wpe.weight", {config.position_rows, hidden});
  for (std::size_t i = 0; i < config.shape.layers.size(); ++i) {
    const std::uint64_t inner = config.shape.layers[i].intermediate_size;
    builder.set_prefix(block_prefix(base, is_gpt2 ? "h" : "layers", i));
    if (is_gpt2) {
      add_gpt2_block(hidden, inner, builder);
    } else {
      add_neox_block(config, inner, builder);
    }
  }
  builder.set_prefix(base);
  builder.norm(is_gpt2 ? "ln_f" : "final_layer_norm", hidden, true);
}

// One table serves encoder and decoder. Blocks are numbered within their stack, while the list
// of layers holds both stacks one after the other.
void add_t5_tensors(const TransformerConfig& config, TensorBuilder& builder) {
  const std::uint64_t hidden = config.shape.hidden_size;
  builder.set_prefix("");
  builder.add("shared.weight", {config.shape.vocab_size, hidden});
  std::size_t index = 0;  // within its stack
  bool was_encoder = true;
  for (const auto& layer : config.shape.layers) {
    if (was_encoder && !layer.is_encoder) {
      builder.set_prefix("");
      builder.norm("encoder.final_layer_norm", hidden, false);
      index = 0;
    }
    was_encoder = layer.is_encoder;
    builder.set_prefix(
        block_prefix("", layer.is_encoder ? "encoder.block" : "decoder.block", index));
    add_t5_attention(layer, hidden, "layer.0.SelfAttention", builder);
    // The first block of a stack computes the position bias for all of them.
    if (index == 0) {
      builder.add("layer.0.SelfAttention.relative_attention_bias.weight",
                  {config.relative_buckets, layer.head_count});
    }
    builder.norm("layer.0.layer_norm", hidden, false);
    if (layer.has_cross_attention) {
      add_t5_attention(layer, hidden, "layer.1.EncDecAttention", builder);
      builder.norm("layer.1.layer_norm", hidden, false);
    }
    const auto* last = layer.has_cross_attention ? "layer.2" : "layer.1";
    add_t5_feed_forward(config, layer, fmt::format("{}.DenseReluDense", last), builder);
    builder.norm(fmt::format("{}.layer_norm", last), hidden, false);
    ++index;
  }
  builder.set_prefix("");
  builder.norm(config.is_encoder_only ? "encoder.final_layer_norm" : "decoder.final_layer_norm",
               hidden, false);
}

}  // namespace muster

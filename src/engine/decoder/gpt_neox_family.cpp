// GPT-NeoX's names, and the order of its query, key and value rows.

#include "engine/decoder/gpt_neox_family.h"

#include <string>

#include "engine/decoder/family_blocks.h"

namespace muster::engine {
namespace {

/// Outputs are all queries, then all keys, then all values; the folder has them head by head.
RowOrder qkv_order(const DecoderSpec& spec) {
  if (spec.naming == TensorNaming::Gguf) return {};
  const std::size_t size = spec.head_size;
  const std::size_t heads = spec.head_count;
  return [size, heads](std::size_t output) {
    const std::size_t part = output / (heads * size);
    const std::size_t head = output / size % heads;
    return (3 * head + part) * size + output % size;
  };
}

Result<LayerTensors> layer_tensors(const WeightLoading& loading, std::size_t index) {
  const auto& spec = loading.spec;
  const std::size_t hidden = spec.hidden_size;
  const std::size_t inner = spec.intermediate_size;
  const bool is_gguf = spec.naming == TensorNaming::Gguf;
  const auto name = [&](std::string_view hugging_face, std::string_view gguf) {
    return layer_name(spec, "gpt_neox.layers.", index, is_gguf ? gguf : hugging_face);
  };
  const auto linear = [&](const std::string& of, std::size_t rows, std::size_t columns,
                          bool has_bias, DenseTensors& to, const RowOrder& order = {}) {
    return find_linear(loading, {of, rows, columns, has_bias, order}, to);
  };
  LayerTensors layer;
  layer.attention_norm =
      MUSTER_TRY(read_norm(loading, name("input_layernorm", "attn_norm"), hidden));
  MUSTER_TRY(linear(name("attention.query_key_value", "attn_qkv"), 3 * hidden, hidden,
                    spec.has_query_bias, layer.qkv, qkv_order(spec)));
  MUSTER_TRY(linear(name("attention.dense", "attn_output"), hidden, hidden, spec.has_output_bias,
                    layer.attention_out));
  layer.feed_forward_norm =
      MUSTER_TRY(read_norm(loading, name("post_attention_layernorm", "ffn_norm"), hidden));
  MUSTER_TRY(
      linear(name("mlp.dense_h_to_4h", "ffn_up"), inner, hidden, spec.has_mlp_bias, layer.up));
  MUSTER_TRY(
      linear(name("mlp.dense_4h_to_h", "ffn_down"), hidden, inner, spec.has_mlp_bias, layer.down));
  return layer;
}

}  // namespace

Result<DecoderTensors> gpt_neox_tensors(const WeightLoading& loading) {
  const auto& spec = loading.spec;
  const bool is_gguf = spec.naming == TensorNaming::Gguf;
  DecoderTensors tensors;
  tensors.embedding =
      MUSTER_TRY(loading.source.matrix(is_gguf ? "token_embd.weight" : "gpt_neox.embed_in.weight",
                                       spec.vocab_size, spec.hidden_size));
  for (std::size_t layer = 0; layer < spec.layer_count; ++layer) {
    tensors.layers.push_back(MUSTER_TRY(layer_tensors(loading, layer)));
  }
  tensors.final_norm = MUSTER_TRY(
      read_norm(loading, is_gguf ? "output_norm" : "gpt_neox.final_layer_norm", spec.hidden_size));
  MUSTER_TRY(find_head(loading, is_gguf ? "output.weight" : "embed_out.weight", tensors));
  return tensors;
}

}  // namespace muster::engine

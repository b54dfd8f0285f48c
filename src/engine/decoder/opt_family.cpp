// OPT's names.

#include "engine/decoder/opt_family.h"

#include <string>

#include "engine/decoder/family_blocks.h"

namespace muster::engine {
namespace {

Result<LayerTensors> layer_tensors(const WeightLoading& loading, const std::string& base,
                                   std::size_t index) {
  const auto& spec = loading.spec;
  const std::size_t hidden = spec.hidden_size;
  const std::size_t inner = spec.intermediate_size;
  const auto prefix = base + "layers." + std::to_string(index) + ".";
  const auto linear = [&](const char* name, std::size_t rows, std::size_t columns, bool has_bias,
                          DenseTensors& to) {
    return find_linear(
        loading, {.name = prefix + name, .rows = rows, .columns = columns, .has_bias = has_bias},
        to);
  };
  LayerTensors layer;
  layer.attention_norm = MUSTER_TRY(read_norm(loading, prefix + "self_attn_layer_norm", hidden));
  for (const auto* name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}) {
    MUSTER_TRY(linear(name, hidden, hidden, spec.has_query_bias, layer.qkv));
  }
  MUSTER_TRY(
      linear("self_attn.out_proj", hidden, hidden, spec.has_output_bias, layer.attention_out));
  layer.feed_forward_norm = MUSTER_TRY(read_norm(loading, prefix + "final_layer_norm", hidden));
  MUSTER_TRY(linear("fc1", inner, hidden, spec.has_mlp_bias, layer.up));
  MUSTER_TRY(linear("fc2", hidden, inner, spec.has_mlp_bias, layer.down));
  return layer;
}

}  // namespace

Result<DecoderTensors> opt_tensors(const WeightLoading& loading) {
  const auto& spec = loading.spec;
  if (!spec.is_norm_before || spec.embedding_size != spec.hidden_size) {
    return Error{ErrorKind::Unsupported,
                 "an OPT with norms behind its parts or a narrower table (350m) is not computed"};
  }
  // 6.7b, 13b and 30b are published by the names of the base model.
  const std::string base =
      loading.source.has("decoder.embed_tokens.weight") ? "decoder." : "model.decoder.";
  DecoderTensors tensors;
  tensors.embedding = MUSTER_TRY(
      loading.source.matrix(base + "embed_tokens.weight", spec.vocab_size, spec.hidden_size));
  tensors.positions = MUSTER_TRY(
      loading.source.matrix(base + "embed_positions.weight", spec.position_rows, spec.hidden_size));
  for (std::size_t layer = 0; layer < spec.layer_count; ++layer) {
    tensors.layers.push_back(MUSTER_TRY(layer_tensors(loading, base, layer)));
  }
  if (spec.has_final_norm) {
    tensors.final_norm =
        MUSTER_TRY(read_norm(loading, base + "final_layer_norm", spec.hidden_size));
  }
  MUSTER_TRY(find_head(loading, "lm_head.weight", tensors));
  return tensors;
}

}  // namespace muster::engine

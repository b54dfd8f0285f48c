// GPT-2's names, and its matrices, which a folder has the other way round.

#include "engine/decoder/gpt2_family.h"

#include <string>

#include "engine/decoder/family_blocks.h"

namespace muster::engine {
namespace {

/// Names as the file has them, with or without the base model's prefix.
struct Gpt2Names {
  bool is_gguf = false;
  std::string prefix;  // "transformer." or none

  std::string of(std::string_view hugging_face, std::string_view gguf) const {
    return is_gguf ? std::string(gguf) : prefix + std::string(hugging_face);
  }
  std::string of_layer(std::size_t layer, std::string_view hugging_face,
                       std::string_view gguf) const {
    const auto number = std::to_string(layer) + ".";
    return of("h." + number + std::string(hugging_face), "blk." + number + std::string(gguf));
  }
};

Result<LayerTensors> layer_tensors(const WeightLoading& loading, const Gpt2Names& names,
                                   std::size_t index) {
  const auto& spec = loading.spec;
  const std::size_t hidden = spec.hidden_size;
  const std::size_t inner = spec.intermediate_size;
  const bool is_transposed = !names.is_gguf;
  const auto linear = [&](const std::string& name, std::size_t rows, std::size_t columns,
                          DenseTensors& to) {
    return find_linear(loading,
                       {.name = name,
                        .rows = rows,
                        .columns = columns,
                        .has_bias = true,
                        .is_transposed = is_transposed},
                       to);
  };
  LayerTensors layer;
  layer.attention_norm =
      MUSTER_TRY(read_norm(loading, names.of_layer(index, "ln_1", "attn_norm"), hidden));
  MUSTER_TRY(
      linear(names.of_layer(index, "attn.c_attn", "attn_qkv"), 3 * hidden, hidden, layer.qkv));
  MUSTER_TRY(linear(names.of_layer(index, "attn.c_proj", "attn_output"), hidden, hidden,
                    layer.attention_out));
  layer.feed_forward_norm =
      MUSTER_TRY(read_norm(loading, names.of_layer(index, "ln_2", "ffn_norm"), hidden));
  MUSTER_TRY(linear(names.of_layer(index, "mlp.c_fc", "ffn_up"), inner, hidden, layer.up));
  MUSTER_TRY(linear(names.of_layer(index, "mlp.c_proj", "ffn_down"), hidden, inner, layer.down));
  return layer;
}

}  // namespace

Result<DecoderTensors> gpt2_tensors(const WeightLoading& loading) {
  const auto& spec = loading.spec;
  const Gpt2Names names{spec.naming == TensorNaming::Gguf,
                        loading.source.has("transformer.wte.weight") ? "transformer." : ""};
  DecoderTensors tensors;
  tensors.embedding = MUSTER_TRY(loading.source.matrix(names.of("wte.weight", "token_embd.weight"),
                                                       spec.vocab_size, spec.hidden_size));
  tensors.positions = MUSTER_TRY(loading.source.matrix(
      names.of("wpe.weight", "position_embd.weight"), spec.position_rows, spec.hidden_size));
  for (std::size_t layer = 0; layer < spec.layer_count; ++layer) {
    tensors.layers.push_back(MUSTER_TRY(layer_tensors(loading, names, layer)));
  }
  tensors.final_norm =
      MUSTER_TRY(read_norm(loading, names.of("ln_f", "output_norm"), spec.hidden_size));
  MUSTER_TRY(find_head(loading, names.is_gguf ? "output.weight" : "lm_head.weight", tensors));
  return tensors;
}

}  // namespace muster::engine

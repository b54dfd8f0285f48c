// Names of Llama's relatives; what else tells them apart stands in their DecoderSpec.

#include "engine/decoder/llama_family.h"

#include <string>

#include "engine/decoder/family_blocks.h"
#include "engine/decoder/mixtral_experts.h"

namespace muster::engine {
namespace {

constexpr std::string_view kPrefix = "model.layers.";

/// A tensor's name in the two kinds of files.
struct Name {
  std::string_view hugging_face;
  std::string_view gguf;
};

class LlamaLayer {
 public:
  LlamaLayer(const WeightLoading& loading, std::size_t layer)
      : loading_(loading), spec_(loading.spec), layer_(layer) {}

  Result<LayerTensors> find() const {
    LayerTensors layer;
    layer.attention_norm = MUSTER_TRY(norm({"input_layernorm", "attn_norm"}, spec_.hidden_size));
    MUSTER_TRY(find_attention(layer));
    MUSTER_TRY(read_norms(layer));
    MUSTER_TRY(find_feed_forward(layer));
    return layer;
  }

 private:
  std::string name(const Name& name) const {
    const bool is_gguf = spec_.naming == TensorNaming::Gguf;
    return layer_name(spec_, kPrefix, layer_, is_gguf ? name.gguf : name.hugging_face);
  }
  Result<NormVectors> norm(const Name& of, std::size_t size) const {
    return read_norm(loading_, name(of), size);
  }
  Status linear(const Name& of, std::size_t rows, std::size_t columns, bool has_bias,
                DenseTensors& to, const RowOrder& order = {}) const {
    return find_linear(loading_, {name(of), rows, columns, has_bias, order}, to);
  }

  Status find_attention(LayerTensors& layer) const {
    const std::size_t hidden = spec_.hidden_size;
    const std::size_t queries = std::size_t{spec_.head_count} * spec_.head_size;
    const std::size_t keys = std::size_t{spec_.kv_head_count} * spec_.head_size;
    const bool bias = spec_.has_query_bias;
    if (spec_.family == DecoderFamily::Phi3) {
      MUSTER_TRY(
          linear({"self_attn.qkv_proj", "attn_qkv"}, queries + 2 * keys, hidden, bias, layer.qkv));
    } else {
      const auto order = rope_order(spec_);
      MUSTER_TRY(linear({"self_attn.q_proj", "attn_q"}, queries, hidden, bias, layer.qkv, order));
      MUSTER_TRY(linear({"self_attn.k_proj", "attn_k"}, keys, hidden, bias, layer.qkv, order));
      MUSTER_TRY(linear({"self_attn.v_proj", "attn_v"}, keys, hidden, bias, layer.qkv));
    }
    if (spec_.has_qk_norm) {
      layer.query_norm = MUSTER_TRY(norm({"self_attn.q_norm", "attn_q_norm"}, spec_.head_size));
      layer.key_norm = MUSTER_TRY(norm({"self_attn.k_norm", "attn_k_norm"}, spec_.head_size));
    }
    return linear({"self_attn.o_proj", "attn_output"}, hidden, queries, spec_.has_output_bias,
                  layer.attention_out);
  }

  // What "post_attention_layernorm" is the norm of differs between the families.
  Status read_norms(LayerTensors& layer) const {
    const std::size_t hidden = spec_.hidden_size;
    if (!spec_.has_post_norms) {
      layer.feed_forward_norm = MUSTER_TRY(norm({"post_attention_layernorm", "ffn_norm"}, hidden));
      return Done{};
    }
    layer.attention_post_norm =
        MUSTER_TRY(norm({"post_attention_layernorm", "post_attention_norm"}, hidden));
    layer.feed_forward_norm = MUSTER_TRY(norm({"pre_feedforward_layernorm", "ffn_norm"}, hidden));
    layer.feed_forward_post_norm =
        MUSTER_TRY(norm({"post_feedforward_layernorm", "post_ffw_norm"}, hidden));
    return Done{};
  }

  Status find_feed_forward(LayerTensors& layer) const {
    const std::size_t hidden = spec_.hidden_size;
    const std::size_t inner = spec_.intermediate_size;
    const bool bias = spec_.has_mlp_bias;
    if (spec_.family == DecoderFamily::Mixtral) {
      return find_mixtral_experts(loading_, layer_, layer);
    }
    if (spec_.family == DecoderFamily::Phi3) {
      MUSTER_TRY(linear({"mlp.gate_up_proj", "ffn_up"}, 2 * inner, hidden, bias, layer.up));
    } else {
      MUSTER_TRY(linear({"mlp.gate_proj", "ffn_gate"}, inner, hidden, bias, layer.up));
      MUSTER_TRY(linear({"mlp.up_proj", "ffn_up"}, inner, hidden, bias, layer.up));
    }
    return linear({"mlp.down_proj", "ffn_down"}, hidden, inner, bias, layer.down);
  }

  const WeightLoading& loading_;
  const DecoderSpec& spec_;
  std::size_t layer_;
};

}  // namespace

Result<DecoderTensors> llama_tensors(const WeightLoading& loading) {
  const auto& spec = loading.spec;
  const bool is_gguf = spec.naming == TensorNaming::Gguf;
  DecoderTensors tensors;
  tensors.embedding =
      MUSTER_TRY(loading.source.matrix(is_gguf ? "token_embd.weight" : "model.embed_tokens.weight",
                                       spec.vocab_size, spec.hidden_size));
  for (std::size_t layer = 0; layer < spec.layer_count; ++layer) {
    tensors.layers.push_back(MUSTER_TRY(LlamaLayer(loading, layer).find()));
  }
  tensors.final_norm =
      MUSTER_TRY(read_norm(loading, is_gguf ? "output_norm" : "model.norm", spec.hidden_size));
  MUSTER_TRY(find_head(loading, is_gguf ? "output.weight" : "lm_head.weight", tensors));
  return tensors;
}

}  // namespace muster::engine

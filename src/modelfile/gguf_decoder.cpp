// What a decoder computes, from a GGUF file.
//
// Architectures are few and listed: an unknown one is refused, and so are keys that ask a known
// one for something more. The reason is the same as for config.json: a missed option gives
// fluent but wrong text.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "modelfile/decoder_checks.h"
#include "modelfile/gguf_file.h"
#include "modelfile/gguf_keys.h"
#include "modelfile/gguf_rope.h"
#include "modelfile/model_limits.h"
#include "modelfile/shown_name.h"

// From the keys of a GGUF file to what is computed. The keys say how large the parts are; what the
// parts are (which norm, which activation) follows from the architecture's name, and whether a part
// has a bias only from the tensors that are there.

namespace muster {
namespace {

Error unsupported(std::string message) { return Error{ErrorKind::Unsupported, std::move(message)}; }

/// What the name of an architecture stands for.
/// Source: src/models/*.cpp and llama_model_rope_type of llama.cpp (llama-cpp-python 0.3.36).
struct Architecture {
  std::string_view name;
  DecoderFamily family;
  RopeStyle rope;
  NormKind norm;
  DecoderActivation activation;
  bool is_gated;
};
constexpr std::array<Architecture, 7> kArchitectures{{
    {"gemma2", DecoderFamily::Gemma2, RopeStyle::Halves, NormKind::Rms, DecoderActivation::GeluTanh,
     true},
    {"gpt2", DecoderFamily::Gpt2, RopeStyle::None, NormKind::Layer, DecoderActivation::GeluTanh,
     false},
    // llama.cpp takes the tanh approximation here; the model was trained with the exact function.
    {"gptneox", DecoderFamily::GptNeox, RopeStyle::Halves, NormKind::Layer, DecoderActivation::Gelu,
     false},
    {"llama", DecoderFamily::Llama, RopeStyle::Pairs, NormKind::Rms, DecoderActivation::Silu, true},
    {"phi3", DecoderFamily::Phi3, RopeStyle::Halves, NormKind::Rms, DecoderActivation::Silu, true},
    {"qwen2", DecoderFamily::Qwen2, RopeStyle::Halves, NormKind::Rms, DecoderActivation::Silu,
     true},
    {"qwen3", DecoderFamily::Qwen3, RopeStyle::Halves, NormKind::Rms, DecoderActivation::Silu,
     true},
}};

Result<Architecture> find_architecture(std::string_view name) {
  std::vector<std::string> known;
  for (const auto& each : kArchitectures) {
    if (each.name == name) return each;
    known.emplace_back(each.name);
  }
  return unsupported(fmt::format("general.architecture cannot be computed: {} (known are {})",
                                 shown_name(name), fmt::join(known, ", ")));
}

/// Keys of models that share an architecture's name but compute something more.
Status refuse_other_keys(const GgufKeys& keys) {
  for (const auto* name : {"logit_scale", "embedding_scale", "residual_scale", "attention.scale",
                           "attention.clamp_kqv", "attention.max_alibi_bias", "expert_shared_count",
                           "rope.scaling.yarn_log_multiplier", "rope.dimension_sections"}) {
    if (keys.find(name) != nullptr) {
      return unsupported(
          fmt::format("what this key asks for is not computed: {}.{}", keys.architecture(), name));
    }
  }
  return Done{};
}

/// The dimensions, which must be those of every layer.
Status read_dimensions(const GgufKeys& keys, const GgufHeader& header, DecoderSpec& spec) {
  const auto shape = MUSTER_TRY(parse_gguf_shape(header));
  if (shape.kind != ModelKind::Decoder) {
    return unsupported(
        fmt::format("a model whose tokens see those behind them is not computed: "
                    "{}.attention.causal",
                    keys.architecture()));
  }
  const auto& first = shape.layers.front();
  for (const auto& layer : shape.layers) {
    if (layer.attention == AttentionKind::Latent || layer.head_size != layer.value_head_size) {
      return unsupported("heads whose keys and values differ in size are not computed");
    }
    if (layer.head_count != first.head_count || layer.kv_head_count != first.kv_head_count ||
        layer.intermediate_size != first.intermediate_size ||
        layer.expert_count != first.expert_count) {
      return unsupported("layers of different sizes are not computed");
    }
    spec.windows.push_back(layer.window);
  }
  spec.vocab_size = shape.vocab_size;
  spec.hidden_size = shape.hidden_size;
  spec.embedding_size = shape.hidden_size;
  spec.layer_count = static_cast<std::uint32_t>(shape.layers.size());
  spec.head_count = first.head_count;
  spec.kv_head_count = first.kv_head_count;
  spec.head_size = first.head_size;
  spec.intermediate_size = first.intermediate_size;
  spec.expert_count = first.expert_count;
  spec.experts_per_token = first.experts_per_token;
  spec.has_tied_head = shape.has_tied_head;
  spec.length_max = MUSTER_TRY(keys.number("context_length", kRowsMax));
  if (spec.intermediate_size == 0) {
    return corrupt_error(fmt::format("{}.feed_forward_length is missing", keys.architecture()));
  }
  return Done{};
}

Status read_position_table(const GgufFile& file, DecoderSpec& spec) {
  const auto* table = file.find("position_embd.weight");
  if (table == nullptr)
    return corrupt_error("the file holds no tensor of that name: position_embd.weight");
  if (table->shape.size() != 2 || table->shape[0] < 1 || table->shape[0] > kRowsMax) {
    return corrupt_error("position_embd.weight is not a table of positions");
  }
  spec.position_rows = static_cast<std::uint32_t>(table->shape[0]);
  spec.length_max = std::min(spec.length_max, spec.position_rows);
  return Done{};
}

// --- the parts ---

Status read_gemma2(const GgufKeys& keys, DecoderSpec& spec) {
  spec.has_post_norms = true;
  spec.embedding_scale = std::sqrt(static_cast<double>(spec.hidden_size));
  // Source: models/gemma2.cpp: the defaults of both caps, and the 27B model, known by its layers,
  // which divides by its width per head.
  spec.attention_cap = MUSTER_TRY(keys.real("attn_logit_softcapping", 50.0));
  spec.logit_cap = MUSTER_TRY(keys.real("final_logit_softcapping", 30.0));
  constexpr std::uint32_t kLayersOf27B = 46;
  const auto divisor =
      spec.layer_count == kLayersOf27B ? spec.hidden_size / spec.head_count : spec.head_size;
  spec.attention_scale = 1 / std::sqrt(static_cast<double>(divisor));
  return Done{};
}

/// Every layer has the window that the file states; llama.cpp leaves it out ("Phi SWA is currently
/// disabled"), the model was trained with it. Source: modeling_phi3.py of transformers 5.17.
Status read_phi3(const GgufKeys& keys, DecoderSpec& spec) {
  const auto window =
      MUSTER_TRY(keys.number("attention.sliding_window", kRowsMax, 0, 0, /*min=*/0));
  spec.windows.assign(spec.layer_count, window);
  return Done{};
}

Status read_parts(const GgufKeys& keys, const GgufFile& file, DecoderSpec& spec) {
  const auto has = [&](const char* name) { return file.find(name) != nullptr; };
  if (has("output.bias")) return unsupported("a head with a bias is not computed: output.bias");
  spec.has_query_bias = has("blk.0.attn_q.bias") || has("blk.0.attn_qkv.bias");
  spec.has_output_bias = has("blk.0.attn_output.bias");
  spec.has_mlp_bias = has("blk.0.ffn_up.bias") || has("blk.0.ffn_down.bias");
  const auto* epsilon = spec.norm == NormKind::Rms ? "attention.layer_norm_rms_epsilon"
                                                   : "attention.layer_norm_epsilon";
  spec.norm_epsilon = MUSTER_TRY(keys.real(epsilon));
  spec.attention_scale = 1 / std::sqrt(static_cast<double>(spec.head_size));
  switch (spec.family) {
    case DecoderFamily::Gemma2:
      return read_gemma2(keys, spec);
    case DecoderFamily::GptNeox:
      spec.is_parallel = MUSTER_TRY(keys.flag("use_parallel_residual", true));
      return Done{};
    case DecoderFamily::Qwen3:
      spec.has_qk_norm = true;
      return Done{};
    case DecoderFamily::Phi3:
      return read_phi3(keys, spec);
    case DecoderFamily::Llama:
      if (spec.expert_count > 0) spec.family = DecoderFamily::Mixtral;
      return Done{};
    default:
      return Done{};
  }
}

// Whoever asked for the decoder names the file.
Status read_ids(const GgufFile& file, DecoderSpec& spec) {
  const auto tokens = read_gguf_tokens(file.header(), file.metadata_bytes());
  if (!tokens && tokens.error().kind == ErrorKind::NotFound) return Done{};
  if (!tokens) return tokens.error();
  spec.bos_id = tokens->bos_id;
  spec.stop_ids = tokens->stop_ids;
  return Done{};
}

}  // namespace

Result<DecoderSpec> read_gguf_decoder(const GgufFile& file) {
  const auto& header = file.header();
  const auto name = MUSTER_TRY(gguf_architecture(header));
  const auto architecture = MUSTER_TRY(find_architecture(name));
  const GgufKeys keys(header, name);
  MUSTER_TRY(refuse_other_keys(keys));
  DecoderSpec spec;
  spec.family = architecture.family;
  spec.naming = TensorNaming::Gguf;
  spec.architecture = name;
  spec.rope.style = architecture.rope;
  spec.norm = architecture.norm;
  spec.activation = architecture.activation;
  spec.is_gated = architecture.is_gated;
  MUSTER_TRY(read_dimensions(keys, header, spec));
  MUSTER_TRY(spec.rope.style == RopeStyle::None ? read_position_table(file, spec)
                                                : read_gguf_rope(keys, file, spec));
  MUSTER_TRY(read_parts(keys, file, spec));
  MUSTER_TRY(read_ids(file, spec));
  if (const auto fault = decoder_fault(spec)) return corrupt_error(*fault);
  return spec;
}

}  // namespace muster

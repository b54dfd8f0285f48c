// What a decoder computes, from its config.json. Constants that change results but no size are
// added here to the dimensions that the planner reads too. Every option that would change a
// result and is not computed is an error, since a decoder that ignores one still produces fluent
// text. Defaults are those of the family's config class, because a config states only what
// differs from them.

#include "modelfile/decoder_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "modelfile/decoder_checks.h"
#include "modelfile/gguf_file.h"
#include "modelfile/json_fields.h"
#include "modelfile/model_limits.h"
#include "modelfile/rope_config.h"
#include "modelfile/shown_name.h"
#include "modelfile/transformer_config.h"

// From a config.json to what is computed. The dimensions, the windows and the biases come from
// parse_transformer_config, which the planner uses as well; here are added the constants that
// change no size: norms, activations, caps, RoPE, and the ids that end a reply.

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kConfigBytesMax = 16 << 20;

Error unsupported(std::string message) {
  return Error{ErrorKind::Unsupported, fmt::format("config.json: {}", message)};
}

struct Family {
  ModelFamily model;
  DecoderFamily decoder;
  NormKind norm;
  std::string_view epsilon_key;  // empty: fixed
  double epsilon;                // where the key is absent
  std::string_view activation_key;
  DecoderActivation activation;  // where the key is absent
  std::optional<std::uint32_t> bos_id;
  std::optional<std::uint32_t> eos_id;  // where no file states one
};
/// Source: transformers 5.17, configuration_*.py; modeling_opt.py for OPT's epsilon.
constexpr std::array<Family, 10> kFamilies{{
    {ModelFamily::Gpt2, DecoderFamily::Gpt2, NormKind::Layer, "layer_norm_epsilon", 1e-5,
     "activation_function", DecoderActivation::GeluTanh, 50256, 50256},
    {ModelFamily::GptNeox, DecoderFamily::GptNeox, NormKind::Layer, "layer_norm_eps", 1e-5,
     "hidden_act", DecoderActivation::Gelu, 0, 2},
    {ModelFamily::Opt, DecoderFamily::Opt, NormKind::Layer, "", 1e-5, "activation_function",
     DecoderActivation::Relu, 2, 2},
    {ModelFamily::Llama, DecoderFamily::Llama, NormKind::Rms, "rms_norm_eps", 1e-6, "hidden_act",
     DecoderActivation::Silu, 1, 2},
    {ModelFamily::Mistral, DecoderFamily::Mistral, NormKind::Rms, "rms_norm_eps", 1e-6,
     "hidden_act", DecoderActivation::Silu, 1, 2},
    {ModelFamily::Qwen2, DecoderFamily::Qwen2, NormKind::Rms, "rms_norm_eps", 1e-6, "hidden_act",
     DecoderActivation::Silu, std::nullopt, std::nullopt},
    {ModelFamily::Qwen3, DecoderFamily::Qwen3, NormKind::Rms, "rms_norm_eps", 1e-6, "hidden_act",
     DecoderActivation::Silu, std::nullopt, std::nullopt},
    {ModelFamily::Gemma2, DecoderFamily::Gemma2, NormKind::Rms, "rms_norm_eps", 1e-6,
     "hidden_activation", DecoderActivation::GeluTanh, 2, 1},
    {ModelFamily::Phi3, DecoderFamily::Phi3, NormKind::Rms, "rms_norm_eps", 1e-5, "hidden_act",
     DecoderActivation::Silu, 1, 32000},
    {ModelFamily::Mixtral, DecoderFamily::Mixtral, NormKind::Rms, "rms_norm_eps", 1e-5,
     "hidden_act", DecoderActivation::Silu, 1, 2},
}};

Result<Family> find_family(const TransformerConfig& model) {
  std::vector<std::string_view> known;
  for (const auto& family : kFamilies) {
    if (family.model == model.family) return family;
    known.push_back(decoder_family_name(family.decoder));
  }
  return unsupported(fmt::format("a model of this family cannot generate here: {} (known are {})",
                                 model.shape.family, fmt::join(known, ", ")));
}

/// Source: transformers 5.17, activations.py.
Result<DecoderActivation> read_activation(const JsonFields& config, const Family& family) {
  const auto name = MUSTER_TRY(config.text_or(family.activation_key, ""));
  if (name.empty()) return family.activation;
  if (name == "silu" || name == "swish") return DecoderActivation::Silu;
  if (name == "relu") return DecoderActivation::Relu;
  if (name == "gelu" || name == "gelu_python") return DecoderActivation::Gelu;
  for (const auto* tanh : {"gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_python_tanh"}) {
    if (name == tanh) return DecoderActivation::GeluTanh;
  }
  return unsupported(
      fmt::format("{} is not computed: {}", family.activation_key, shown_name(name)));
}

void copy_dimensions(const TransformerConfig& model, DecoderSpec& spec) {
  const auto& shape = model.shape;
  const auto& layer = shape.layers.front();
  spec.vocab_size = shape.vocab_size;
  spec.hidden_size = shape.hidden_size;
  spec.embedding_size = model.embedding_size == 0 ? shape.hidden_size : model.embedding_size;
  spec.layer_count = static_cast<std::uint32_t>(shape.layers.size());
  spec.head_count = layer.head_count;
  spec.kv_head_count = layer.kv_head_count;
  spec.head_size = layer.head_size;
  spec.intermediate_size = layer.intermediate_size;
  spec.is_gated = layer.is_gated;
  spec.expert_count = layer.expert_count;
  spec.experts_per_token = layer.experts_per_token;
  spec.length_max = shape.length_max;
  spec.position_rows = model.position_rows;
  for (const auto& each : shape.layers) spec.windows.push_back(each.window);
  spec.has_query_bias = model.has_query_bias;
  spec.has_output_bias = model.has_output_bias;
  spec.has_mlp_bias = model.has_mlp_bias;
  spec.has_norm_weights = model.has_norm_weights;
  spec.has_final_norm = model.has_final_norm;
  spec.has_tied_head = shape.has_tied_head;
  spec.dtype = shape.dtype;
}

/// A number of a key that may be null, which means 0: none.
Result<double> optional_cap(const JsonFields& config, std::string_view key, double fallback) {
  if (config.states(key) && !config.has(key)) return 0.0;
  return config.number_or(key, fallback);
}

Status read_gpt2(const JsonFields& config, DecoderSpec& spec) {
  if (!MUSTER_TRY(config.boolean_or("scale_attn_weights", true))) spec.attention_scale = 1;
  spec.has_layer_scale = MUSTER_TRY(config.boolean_or("scale_attn_by_inverse_layer_idx", false));
  return Done{};
}

// Gemma 2 stores the weights of its norms less one, scales its embeddings by the root of the
// width and caps its scores. Leaving one of these out gives wrong text and no error.
Status read_gemma2(const JsonFields& config, DecoderSpec& spec) {
  spec.norm_weight_offset = 1;
  spec.has_post_norms = true;
  spec.embedding_scale = std::sqrt(static_cast<double>(spec.hidden_size));
  spec.attention_cap = MUSTER_TRY(optional_cap(config, "attn_logit_softcapping", 50));
  spec.logit_cap = MUSTER_TRY(optional_cap(config, "final_logit_softcapping", 30));
  const auto divisor = MUSTER_TRY(config.number_or("query_pre_attn_scalar", 256));
  if (!(divisor > 0)) return config.wrong("query_pre_attn_scalar", "a positive number");
  spec.attention_scale = 1 / std::sqrt(divisor);
  return Done{};
}

Status read_parts(const JsonFields& config, const Family& family, DecoderSpec& spec) {
  spec.norm = family.norm;
  spec.norm_epsilon = family.epsilon;
  if (!family.epsilon_key.empty()) {
    spec.norm_epsilon = MUSTER_TRY(config.number_or(family.epsilon_key, family.epsilon));
  }
  spec.activation = MUSTER_TRY(read_activation(config, family));
  spec.attention_scale = 1 / std::sqrt(static_cast<double>(spec.head_size));
  switch (spec.family) {
    case DecoderFamily::Gpt2:
      return read_gpt2(config, spec);
    case DecoderFamily::Opt:
      spec.position_offset = 2;
      spec.is_norm_before = MUSTER_TRY(config.boolean_or("do_layer_norm_before", true));
      return Done{};
    case DecoderFamily::GptNeox:
      spec.is_parallel = MUSTER_TRY(config.boolean_or("use_parallel_residual", true));
      return Done{};
    case DecoderFamily::Qwen3:
      spec.has_qk_norm = true;
      return Done{};
    case DecoderFamily::Gemma2:
      return read_gemma2(config, spec);
    default:
      return Done{};
  }
}

// --- ids ---

/// A number or a list of numbers; empty when the key is absent or null.
Result<std::set<std::uint32_t>> read_ids(const JsonFields& fields, std::string_view key) {
  std::set<std::uint32_t> ids;
  const auto* value = fields.find(key);
  if (value == nullptr) return ids;
  const auto list = value->is_array() ? *value : nlohmann::json::array({*value});
  for (const auto& each : list) {
    if (!each.is_number_unsigned() || each.get<std::uint64_t>() > UINT32_MAX) {
      return fields.wrong(key, "a token id or a list of them");
    }
    ids.insert(each.get<std::uint32_t>());
  }
  return ids;
}

// generation_config.json wins where it states an end: models tuned for chat often add the end of
// a turn there only. A null in config.json means none, so the default of the family counts only
// where the key is absent.
Status read_special_ids(const JsonFields& config, const Family& family,
                        std::optional<std::string_view> generation, DecoderSpec& spec) {
  auto bos = MUSTER_TRY(read_ids(config, "bos_token_id"));
  auto ends = MUSTER_TRY(read_ids(config, "eos_token_id"));
  if (ends.empty() && family.eos_id && !config.states("eos_token_id")) ends.insert(*family.eos_id);
  if (bos.empty() && family.bos_id && !config.states("bos_token_id")) bos.insert(*family.bos_id);
  if (generation) {
    const auto fields = MUSTER_TRY(JsonFields::parse("generation_config.json", *generation));
    auto stated = MUSTER_TRY(read_ids(fields, "eos_token_id"));
    if (!stated.empty()) ends = std::move(stated);
  }
  spec.stop_ids.assign(ends.begin(), ends.end());
  if (!bos.empty()) spec.bos_id = *bos.begin();
  return Done{};
}

Result<std::optional<std::string>> read_if_there(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::optional<std::string>();
  return std::optional(MUSTER_TRY(read_regular_file(path, kConfigBytesMax)));
}

}  // namespace

Result<DecoderSpec> parse_decoder_config(std::string_view text,
                                         std::optional<std::string_view> generation_config) {
  const auto model = MUSTER_TRY(parse_transformer_config(text));
  const auto family = MUSTER_TRY(find_family(model));
  if (model.shape.kind != ModelKind::Decoder || model.task != TaskHead::LanguageModel) {
    return unsupported(fmt::format("architectures names no model that generates: {}",
                                   shown_name(model.architecture)));
  }
  if (model.is_quantised) {
    return unsupported("weights of a quantization_config are not read; a GGUF file's are");
  }
  const auto config = MUSTER_TRY(JsonFields::parse("config.json", text));
  DecoderSpec spec;
  spec.family = family.decoder;
  spec.naming = TensorNaming::HuggingFace;
  spec.architecture = model.architecture;
  copy_dimensions(model, spec);
  MUSTER_TRY(read_parts(config, family, spec));
  if (spec.family != DecoderFamily::Gpt2 && spec.family != DecoderFamily::Opt) {
    spec.rope = MUSTER_TRY(parse_rope(config, family.model, spec.head_size, spec.length_max));
  }
  MUSTER_TRY(read_special_ids(config, family, generation_config, spec));
  if (const auto fault = decoder_fault(spec)) {
    return Error{ErrorKind::InvalidArgument, fmt::format("config.json: {}", *fault)};
  }
  return spec;
}

Result<DecoderSpec> read_decoder_spec(const fs::path& source) {
  if (source.extension() == ".gguf") {
    const auto file = MUSTER_TRY(GgufFile::open(source));
    return file.decoder();
  }
  const auto config = MUSTER_TRY(read_regular_file(source / "config.json", kConfigBytesMax));
  const auto generation = MUSTER_TRY(read_if_there(source / "generation_config.json"));
  auto spec = parse_decoder_config(config, generation);
  if (spec) return spec;
  return Error{spec.error().kind, fmt::format("{}: {}", source.string(), spec.error().message)};
}

}  // namespace muster

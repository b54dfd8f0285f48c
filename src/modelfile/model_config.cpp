// config.json of an encoder. Families, activations and kinds of attention that are not computed are
// refused by name.
// Limits are far above any published model and keep products within 64 bits.

#include "modelfile/model_config.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "modelfile/json_fields.h"

namespace muster {
namespace {

// Far above any published encoder, and small enough that products of two fit 64 bits everywhere.
constexpr std::uint32_t kEncoderRowsMax = 1U << 26;    // vocabulary, positions
constexpr std::uint32_t kEncoderWidthMax = 1U << 17;   // hidden, intermediate
constexpr std::uint32_t kEncoderLayersMax = 1U << 10;  // layers, heads, buckets, token types

Result<EncoderFamily> parse_family(const JsonFields& config) {
  const auto type = MUSTER_TRY(config.text_or("model_type", ""));
  if (type == "bert") return EncoderFamily::Bert;
  if (type == "roberta" || type == "xlm-roberta" || type == "camembert") {
    return EncoderFamily::Roberta;
  }
  if (type == "distilbert") return EncoderFamily::DistilBert;
  if (type == "mpnet") return EncoderFamily::Mpnet;
  if (type.empty()) return config.wrong("model_type", "the name of a model family");
  return Error{ErrorKind::Unsupported,
               fmt::format("config.json: model_type is none of bert, roberta, xlm-roberta, "
                           "camembert, distilbert and mpnet: {}",
                           type)};
}

Result<Activation> parse_activation(const JsonFields& config, std::string_view key) {
  const auto name = MUSTER_TRY(config.text_or(key, "gelu"));
  if (name == "gelu" || name == "gelu_python") return Activation::Gelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") {
    return Activation::GeluTanh;
  }
  if (name == "relu") return Activation::Relu;
  return Error{ErrorKind::Unsupported,
               fmt::format("config.json: {} is none of gelu, gelu_new and relu: {}", key, name)};
}

Result<std::uint32_t> parse_padding_id(const JsonFields& config, const EncoderSpec& encoder) {
  // MPNet's code fixes it, whatever the config says. Source: modeling_mpnet.py, MPNetEmbeddings.
  if (encoder.family == EncoderFamily::Mpnet) return 1U;
  const auto* value = config.find("pad_token_id");
  if (value == nullptr) return encoder.family == EncoderFamily::Roberta ? 1U : 0U;
  if (!value->is_number_unsigned() || value->get<std::uint64_t>() >= encoder.vocab_size) {
    return config.wrong("pad_token_id", "an id of the vocabulary");
  }
  return static_cast<std::uint32_t>(value->get<std::uint64_t>());
}

struct DimensionNames {
  std::string_view hidden, layers, heads, intermediate, activation;
};

DimensionNames dimension_names(EncoderFamily family) {
  if (family == EncoderFamily::DistilBert) {
    return {"dim", "n_layers", "n_heads", "hidden_dim", "activation"};
  }
  return {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
          "hidden_act"};
}

Status refuse_other_attention(const JsonFields& config) {
  const auto position = MUSTER_TRY(config.text_or("position_embedding_type", "absolute"));
  if (position != "absolute") {
    return Error{ErrorKind::Unsupported,
                 fmt::format("config.json: position_embedding_type is not absolute: {}", position)};
  }
  for (const auto* key : {"is_decoder", "add_cross_attention"}) {
    if (MUSTER_TRY(config.boolean_or(key, false))) {
      return Error{ErrorKind::Unsupported,
                   fmt::format("config.json: the model is not an encoder: {} is true", key)};
    }
  }
  return Done{};
}

Status check_dimensions(const EncoderSpec& encoder) {
  const auto invalid = [](std::string message) {
    return Error{ErrorKind::InvalidArgument, "config.json: " + std::move(message)};
  };
  if (encoder.hidden_size % encoder.head_count != 0) {
    return invalid(fmt::format("the hidden size is not a multiple of the heads: {} and {}",
                               encoder.hidden_size, encoder.head_count));
  }
  const bool is_offset =
      encoder.family == EncoderFamily::Roberta || encoder.family == EncoderFamily::Mpnet;
  if (is_offset && encoder.position_count <= encoder.padding_id + 1) {
    return invalid(
        fmt::format("max_position_embeddings leaves no position after the padding id: {} and {}",
                    encoder.position_count, encoder.padding_id));
  }
  if (!(encoder.layer_norm_epsilon > 0) || !std::isfinite(encoder.layer_norm_epsilon)) {
    return invalid(
        fmt::format("layer_norm_eps must be above 0, not {}", encoder.layer_norm_epsilon));
  }
  return Done{};
}

}  // namespace

Result<EncoderSpec> parse_encoder_config(std::string_view text) {
  const auto config = MUSTER_TRY(JsonFields::parse("config.json", text));
  EncoderSpec encoder;
  encoder.family = MUSTER_TRY(parse_family(config));
  MUSTER_TRY(refuse_other_attention(config));

  const auto names = dimension_names(encoder.family);
  encoder.vocab_size = MUSTER_TRY(config.positive("vocab_size", kEncoderRowsMax));
  encoder.hidden_size = MUSTER_TRY(config.positive(names.hidden, kEncoderWidthMax));
  encoder.layer_count = MUSTER_TRY(config.positive(names.layers, kEncoderLayersMax));
  encoder.head_count = MUSTER_TRY(config.positive(names.heads, kEncoderLayersMax));
  encoder.intermediate_size = MUSTER_TRY(config.positive(names.intermediate, kEncoderWidthMax));
  encoder.position_count = MUSTER_TRY(config.positive("max_position_embeddings", kEncoderRowsMax));
  encoder.activation = MUSTER_TRY(parse_activation(config, names.activation));
  encoder.padding_id = MUSTER_TRY(parse_padding_id(config, encoder));

  switch (encoder.family) {
    case EncoderFamily::Bert:
      encoder.token_type_count =
          MUSTER_TRY(config.positive_or("type_vocab_size", kEncoderLayersMax, 2));
      break;
    case EncoderFamily::Roberta:
      encoder.token_type_count =
          MUSTER_TRY(config.positive_or("type_vocab_size", kEncoderLayersMax, 1));
      break;
    case EncoderFamily::DistilBert:
      break;
    case EncoderFamily::Mpnet:
      encoder.relative_bucket_count =
          MUSTER_TRY(config.positive_or("relative_attention_num_buckets", kEncoderLayersMax, 32));
      // Half of the buckets look back, and half of those are exact: fewer than 4 leave none.
      if (encoder.relative_bucket_count < 4) {
        return config.wrong("relative_attention_num_buckets", "at least 4");
      }
      break;
  }
  // DistilBERT's code fixes the epsilon. Source: modeling_distilbert.py, TransformerBlock.
  if (encoder.family != EncoderFamily::DistilBert) {
    encoder.layer_norm_epsilon = MUSTER_TRY(config.number_or("layer_norm_eps", 1e-12));
  }
  MUSTER_TRY(check_dimensions(encoder));
  return encoder;
}

}  // namespace muster

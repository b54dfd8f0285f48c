// The tensors of a model from its config alone, so that memory can be planned before anything is
// downloaded. They are listed as transformers would create them, which is not always what a file
// stores. Where a config does not determine them (quantised weights, a head of another task) the
// result would be a guess, and it is refused. Sizes are bounded once, at the end; until then an
// overflow only sets a flag.

#include "modelfile/config_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "modelfile/family_table.h"
#include "modelfile/model_limits.h"

namespace muster {
namespace {

struct Dtype {
  std::string_view config;       // torch's name
  std::string_view safetensors;  // the file format's
  std::uint64_t bytes;
};
constexpr std::array<Dtype, 4> kDtypes{{
    {"float32", "F32", 4},
    {"float16", "F16", 2},
    {"bfloat16", "BF16", 2},
    {"float64", "F64", 8},
}};

Result<Dtype> dtype_of(std::string_view stated) {
  // Nothing stated: torch's default.
  if (stated.empty()) return kDtypes[0];
  if (stated.starts_with("torch.")) stated.remove_prefix(6);
  for (const auto& dtype : kDtypes) {
    if (dtype.config == stated) return dtype;
  }
  return Error{ErrorKind::Unsupported,
               fmt::format("config.json: dtype is none of float32, float16, bfloat16 and float64: "
                           "{}",
                           stated.substr(0, 60))};
}

// The masked-language-model heads: a transform of the hidden state, then the tied table with a bias
// of its own.
void add_masked_head(const TransformerConfig& config, TensorBuilder& builder) {
  const auto hidden = config.shape.hidden_size;
  const auto vocab = config.shape.vocab_size;
  std::string_view table;
  switch (config.family) {
    case ModelFamily::Bert:
      builder.add("cls.predictions.bias", {vocab});
      builder.linear("cls.predictions.transform.dense", hidden, hidden, true);
      builder.norm("cls.predictions.transform.LayerNorm", hidden, true);
      table = "cls.predictions.decoder";
      break;
    case ModelFamily::DistilBert:
      builder.linear("vocab_transform", hidden, hidden, true);
      builder.norm("vocab_layer_norm", hidden, true);
      builder.add("vocab_projector.bias", {vocab});
      table = "vocab_projector";
      break;
    default:
      builder.add("lm_head.bias", {vocab});
      builder.linear("lm_head.dense", hidden, hidden, true);
      builder.norm("lm_head.layer_norm", hidden, true);
      table = "lm_head.decoder";
      break;
  }
  if (config.is_tied) return;
  // Untied, the decoder has a table and a bias of its own; DistilBERT's bias is the one above.
  builder.linear(table, vocab, hidden, config.family != ModelFamily::DistilBert);
}

// A tied head has no tensor of its own: it reads the table of the embedding, which is listed
// already.
void add_head(const TransformerConfig& config, TensorBuilder& builder) {
  builder.set_prefix("");
  if (is_encoder_family(config.family)) return add_masked_head(config, builder);
  if (config.is_tied) return;
  const auto width = config.embedding_size == 0 ? config.shape.hidden_size : config.embedding_size;
  builder.add("lm_head.weight", {config.shape.vocab_size, width});
}

std::string base_prefix(const TransformerConfig& config) {
  const auto base = family_traits(config.family).base;
  if (config.task == TaskHead::None || base.empty()) return {};
  return fmt::format("{}.", base);
}

// What a packed format stores for a matrix, and which head a class of another task has, is
// written in code and not in the config.
Status check_determined(const TransformerConfig& config) {
  const auto refuse = [](std::string what) {
    return Error{
        ErrorKind::Unsupported,
        fmt::format("config.json: {}: its tensors are read from the weight files only", what)};
  };
  if (config.is_quantised) return refuse("quantization_config");
  const bool is_text_alone = config.is_nested && config.task != TaskHead::LanguageModel;
  if (config.task == TaskHead::Other || is_text_alone) {
    return refuse(fmt::format("architectures: {}", config.architecture.substr(0, 60)));
  }
  return Done{};
}

}  // namespace

// The product of a shape is checked at each step: a config may state sizes whose product wraps
// around to something harmless.
void TensorBuilder::add_as(std::string_view name, std::initializer_list<std::uint64_t> shape,
                           std::string dtype, std::uint64_t element_bytes) {
  WeightTensor tensor;
  tensor.name = prefix_ + std::string(name);
  tensor.dtype = std::move(dtype);
  tensor.is_floating = true;
  std::uint64_t bytes = element_bytes;
  for (const auto extent : shape) {
    tensor.shape.push_back(static_cast<std::int64_t>(extent));
    if (__builtin_mul_overflow(bytes, extent, &bytes) || bytes > kModelBytesMax) {
      is_too_large_ = true;
      return;
    }
  }
  tensor.bytes = bytes;
  bytes_ += bytes;
  is_too_large_ = is_too_large_ || bytes_ > kModelBytesMax;
  if (!is_too_large_) tensors_.push_back(std::move(tensor));
}

void TensorBuilder::add(std::string_view name, std::initializer_list<std::uint64_t> shape) {
  add_as(name, shape, dtype_, element_bytes_);
}

void TensorBuilder::add_float32(std::string_view name, std::initializer_list<std::uint64_t> shape) {
  add_as(name, shape, "F32", 4);
}

void TensorBuilder::linear(std::string_view name, std::uint64_t out, std::uint64_t in,
                           bool has_bias) {
  add(fmt::format("{}.weight", name), {out, in});
  if (has_bias) add(fmt::format("{}.bias", name), {out});
}

void TensorBuilder::norm(std::string_view name, std::uint64_t size, bool has_bias) {
  add(fmt::format("{}.weight", name), {size});
  if (has_bias) add(fmt::format("{}.bias", name), {size});
}

Result<std::vector<WeightTensor>> TensorBuilder::finish() && {
  if (!is_too_large_) return std::move(tensors_);
  return Error{
      ErrorKind::InvalidArgument,
      fmt::format("config.json: the sizes make a model of more than {} bytes", kModelBytesMax)};
}

Result<std::vector<WeightTensor>> config_tensors(const TransformerConfig& config) {
  MUSTER_TRY(check_determined(config));
  const auto dtype = MUSTER_TRY(dtype_of(config.shape.dtype));
  TensorBuilder builder(std::string(dtype.safetensors), dtype.bytes);
  builder.set_prefix(base_prefix(config));
  switch (config.family) {
    case ModelFamily::Bert:
    case ModelFamily::Roberta:
    case ModelFamily::Mpnet:
    case ModelFamily::DistilBert:
      add_encoder_tensors(config, builder);
      break;
    case ModelFamily::Gpt2:
    case ModelFamily::GptNeox:
    case ModelFamily::Opt:
      add_gpt_tensors(config, builder);
      break;
    case ModelFamily::T5:
      add_t5_tensors(config, builder);
      break;
    default:
      if (config.is_nested) {
        if (config.vision.layer_count > 0) add_vision_tensors(config, builder);
        builder.set_prefix("model.language_model.");
      }
      add_llama_tensors(config, builder);
      break;
  }
  if (config.task == TaskHead::LanguageModel) add_head(config, builder);
  return std::move(builder).finish();
}

}  // namespace muster

// Four families keep the same weights under different names; here they become one form. Each tensor
// must have exactly the shape that the configuration asks for, which finds a mismatched folder
// before it gives wrong vectors. float32 tensors stay views of the mapped file, so weights that
// need no conversion take no memory of their own. A prefix is optional, since checkpoints are saved
// with and without a head around the encoder.

#include "engine/models/encoder_weights.h"

#include <ATen/ops/_to_copy.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace muster::engine {
namespace {

// Where a family keeps what; {} is the layer's index.
// Source: the module names of transformers 5.17, modeling_{bert,roberta,distilbert,mpnet}.py.
struct FamilyNames {
  std::string_view prefix, layer, query, key, value, attention_out, attention_norm, up, down,
      out_norm;
};

constexpr FamilyNames kBertNames{"bert.",
                                 "encoder.layer.{}.",
                                 "attention.self.query",
                                 "attention.self.key",
                                 "attention.self.value",
                                 "attention.output.dense",
                                 "attention.output.LayerNorm",
                                 "intermediate.dense",
                                 "output.dense",
                                 "output.LayerNorm"};
constexpr FamilyNames kDistilBertNames{
    "distilbert.",     "transformer.layer.{}.", "attention.q_lin", "attention.k_lin",
    "attention.v_lin", "attention.out_lin",     "sa_layer_norm",   "ffn.lin1",
    "ffn.lin2",        "output_layer_norm"};
constexpr FamilyNames kMpnetNames{
    "mpnet.",           "encoder.layer.{}.", "attention.attn.q",    "attention.attn.k",
    "attention.attn.v", "attention.attn.o",  "attention.LayerNorm", "intermediate.dense",
    "output.dense",     "output.LayerNorm"};

FamilyNames family_names(EncoderFamily family) {
  FamilyNames names = kBertNames;
  switch (family) {
    case EncoderFamily::Bert:
      break;
    case EncoderFamily::Roberta:
      names.prefix = "roberta.";
      break;
    case EncoderFamily::DistilBert:
      return kDistilBertNames;
    case EncoderFamily::Mpnet:
      return kMpnetNames;
  }
  return names;
}

std::optional<at::ScalarType> float_type(TensorType type) {
  switch (type) {
    case TensorType::F32:
      return at::kFloat;
    case TensorType::F16:
      return at::kHalf;
    case TensorType::BF16:
      return at::kBFloat16;
    case TensorType::F64:
      return at::kDouble;
    default:
      return std::nullopt;
  }
}

class WeightFinder {
 public:
  WeightFinder(const ModelWeights& files, std::string_view prefix)
      : files_(files), prefix_(prefix) {}

  /// A float32 tensor of exactly `shape`; a view where the file has it so.
  Result<at::Tensor> tensor(const std::string& name, std::vector<std::int64_t> shape) const {
    const auto* view = find(name);
    if (view == nullptr) {
      return Error{ErrorKind::Corrupt, fmt::format("the weights have no tensor {}", name)};
    }
    if (view->shape != shape) {
      return Error{ErrorKind::Corrupt,
                   fmt::format("tensor {} has the wrong shape: [{}] instead of [{}]", name,
                               fmt::join(view->shape, ", "), fmt::join(shape, ", "))};
    }
    const auto type = float_type(view->type);
    if (!type) {
      return Error{ErrorKind::Unsupported,
                   fmt::format("tensor {} is not of a float type that is read", name)};
    }
    // torch has no const views; nothing here writes to one, and the mapping is read-only.
    auto* data = const_cast<std::byte*>(view->data.data());
    auto tensor = at::from_blob(data, shape, at::TensorOptions().dtype(*type));
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(data) % alignof(double) == 0;
    if (*type == at::kFloat && is_aligned) return tensor;
    if (!is_aligned) tensor = realigned(*view, shape, *type);
    return at::_to_copy(tensor, at::kFloat);
  }

  Result<NormWeights> norm(const std::string& name, std::int64_t size) const {
    // Checkpoints converted from TensorFlow name the two gamma and beta.
    const bool is_old = find(name + ".gamma") != nullptr;
    NormWeights weights;
    weights.weight = MUSTER_TRY(tensor(name + (is_old ? ".gamma" : ".weight"), {size}));
    weights.bias = MUSTER_TRY(tensor(name + (is_old ? ".beta" : ".bias"), {size}));
    return weights;
  }

  Result<LinearWeights> linear(const std::string& name, std::int64_t out, std::int64_t in) const {
    LinearWeights weights;
    weights.weight = MUSTER_TRY(tensor(name + ".weight", {out, in}));
    weights.bias = MUSTER_TRY(tensor(name + ".bias", {out}));
    return weights;
  }

 private:
  const TensorView* find(const std::string& name) const {
    const auto* view = files_.find(name);
    return view != nullptr ? view : files_.find(std::string(prefix_) + name);
  }

  // A copy of bytes that begin at an odd address, which torch's loops may not read in place.
  static at::Tensor realigned(const TensorView& view, const std::vector<std::int64_t>& shape,
                              at::ScalarType type) {
    auto bytes = std::make_shared<std::vector<std::byte>>(view.data.begin(), view.data.end());
    auto* data = bytes->data();
    return at::from_blob(
        data, shape, [bytes](void*) {}, at::TensorOptions().dtype(type));
  }

  const ModelWeights& files_;
  std::string_view prefix_;
};

// The three projections of attention as one product: one pass over the rows instead of three.
Result<LinearWeights> collect_qkv(const WeightFinder& finder, const std::string& layer,
                                  const FamilyNames& names, std::int64_t hidden) {
  std::array<LinearWeights, 3> parts;
  const std::array<std::string_view, 3> part_names{names.query, names.key, names.value};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] = MUSTER_TRY(finder.linear(layer + std::string(part_names[i]), hidden, hidden));
  }
  return LinearWeights{at::cat({parts[0].weight, parts[1].weight, parts[2].weight}),
                       at::cat({parts[0].bias, parts[1].bias, parts[2].bias})};
}

Result<LayerWeights> collect_layer(const EncoderSpec& encoder, const WeightFinder& finder,
                                   const FamilyNames& names, std::uint32_t index) {
  const auto prefix = fmt::format(fmt::runtime(names.layer), index);
  const auto at = [&](std::string_view name) { return prefix + std::string(name); };
  const std::int64_t hidden = encoder.hidden_size;
  const std::int64_t wide = encoder.intermediate_size;
  LayerWeights layer;
  layer.qkv = MUSTER_TRY(collect_qkv(finder, prefix, names, hidden));
  layer.attention_out = MUSTER_TRY(finder.linear(at(names.attention_out), hidden, hidden));
  layer.attention_norm = MUSTER_TRY(finder.norm(at(names.attention_norm), hidden));
  layer.up = MUSTER_TRY(finder.linear(at(names.up), wide, hidden));
  layer.down = MUSTER_TRY(finder.linear(at(names.down), hidden, wide));
  layer.out_norm = MUSTER_TRY(finder.norm(at(names.out_norm), hidden));
  return layer;
}

Result<HeadWeights> collect_head(const EncoderSpec& encoder, const WeightFinder& finder,
                                 std::int64_t label_count) {
  const std::int64_t hidden = encoder.hidden_size;
  std::string dense = "classifier.dense";
  std::string out = "classifier.out_proj";
  HeadWeights head;
  if (encoder.family == EncoderFamily::Bert) {
    dense = "pooler.dense";
    out = "classifier";
  } else if (encoder.family == EncoderFamily::DistilBert) {
    dense = "pre_classifier";
    out = "classifier";
    head.is_relu = true;
  }
  head.dense = MUSTER_TRY(finder.linear(dense, hidden, hidden));
  head.out = MUSTER_TRY(finder.linear(out, label_count, hidden));
  return head;
}

// Of every length a text may have, from the first usable row on.
at::Tensor usable_positions(const EncoderSpec& encoder, const at::Tensor& positions) {
  const std::int64_t length_max = encoder.length_max();
  return positions.narrow(0, positions.size(0) - length_max, length_max).contiguous();
}

// Adding the type's row to the positions once spares an addition for each token; with segments
// there are two such tables.
Status collect_embeddings(const EncoderSpec& encoder, const WeightFinder& finder, bool has_segments,
                          EncoderWeights& weights) {
  const std::int64_t hidden = encoder.hidden_size;
  weights.words =
      MUSTER_TRY(finder.tensor("embeddings.word_embeddings.weight", {encoder.vocab_size, hidden}));
  auto positions = MUSTER_TRY(
      finder.tensor("embeddings.position_embeddings.weight", {encoder.position_count, hidden}));
  if (encoder.token_type_count > 0) {
    const auto types = MUSTER_TRY(finder.tensor("embeddings.token_type_embeddings.weight",
                                                {encoder.token_type_count, hidden}));
    if (has_segments && encoder.token_type_count > 1) {
      weights.second_positions = usable_positions(encoder, positions.add(types.select(0, 1)));
    }
    positions = positions.add(types.select(0, 0));  // one text is all of token type 0
  }
  weights.positions = usable_positions(encoder, positions);
  const bool has_padding_row = encoder.padding_id < encoder.position_count;
  weights.padding = positions.select(0, has_padding_row ? encoder.padding_id : 0).contiguous();
  weights.embedding_norm = MUSTER_TRY(finder.norm("embeddings.LayerNorm", hidden));
  return Done{};
}

}  // namespace

Result<EncoderWeights> collect_weights(const EncoderSpec& encoder, ModelWeights files,
                                       const std::optional<RerankSpec>& rerank) {
  const auto names = family_names(encoder.family);
  EncoderWeights weights;
  weights.files = std::move(files);
  const WeightFinder finder(weights.files, names.prefix);
  MUSTER_TRY(collect_embeddings(encoder, finder, rerank && rerank->has_segments, weights));
  if (encoder.relative_bucket_count > 0) {
    weights.relative_bias =
        MUSTER_TRY(finder.tensor("encoder.relative_attention_bias.weight",
                                 {encoder.relative_bucket_count, encoder.head_count}));
  }
  for (std::uint32_t i = 0; i < encoder.layer_count; ++i) {
    weights.layers.push_back(MUSTER_TRY(collect_layer(encoder, finder, names, i)));
  }
  if (rerank) weights.head = MUSTER_TRY(collect_head(encoder, finder, rerank->label_count));
  return weights;
}

}  // namespace muster::engine

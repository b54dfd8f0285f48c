// What finding any family takes: norms, dense layers, the head, and the order of turned pairs.

#include "engine/decoder/family_blocks.h"

#include <fmt/format.h>

#include <utility>

namespace muster::engine {

std::string layer_name(const DecoderSpec& spec, std::string_view hugging_face_prefix,
                       std::size_t layer, std::string_view name) {
  const auto prefix = spec.naming == TensorNaming::Gguf ? "blk." : hugging_face_prefix;
  return fmt::format("{}{}.{}", prefix, layer, name);
}

Result<NormVectors> read_norm(const WeightLoading& loading, const std::string& name,
                              std::size_t size) {
  NormVectors norm;
  norm.bias.assign(size, 0.0F);
  if (!loading.spec.has_norm_weights) {
    norm.weight.assign(size, 1.0F);
    return norm;
  }
  norm.weight = MUSTER_TRY(loading.source.vector(name + ".weight", size));
  const auto offset = static_cast<float>(loading.spec.norm_weight_offset);
  for (auto& weight : norm.weight) weight += offset;
  if (loading.spec.norm == NormKind::Layer) {
    norm.bias = MUSTER_TRY(loading.source.vector(name + ".bias", size));
  }
  return norm;
}

Status find_linear(const WeightLoading& loading, const LinearTensor& tensor, DenseTensors& to) {
  const auto& source = loading.source;
  const auto weight = tensor.name + ".weight";
  DensePart part;
  part.matrix = MUSTER_TRY(tensor.is_transposed
                               ? source.transposed_matrix(weight, tensor.rows, tensor.columns)
                               : source.matrix(weight, tensor.rows, tensor.columns));
  part.order = tensor.order;
  if (tensor.has_bias) part.bias = MUSTER_TRY(source.vector(tensor.name + ".bias", tensor.rows));
  to.parts.push_back(std::move(part));
  return Done{};
}

RowOrder rope_order(const DecoderSpec& spec) {
  if (spec.rope.style != RopeStyle::Pairs) return {};
  const std::size_t head = spec.head_size;
  const std::size_t turning = spec.rope.size;
  return [head, turning](std::size_t output) {
    const std::size_t first = output / head * head;
    const std::size_t i = output % head;
    if (i >= turning) return output;
    const std::size_t half = turning / 2;
    return first + (i < half ? 2 * i : 2 * (i - half) + 1);
  };
}

Status find_head(const WeightLoading& loading, const std::string& name, DecoderTensors& tensors) {
  const auto& spec = loading.spec;
  DensePart part{.matrix = tensors.embedding};
  if (!spec.has_tied_head) {
    part.matrix = MUSTER_TRY(loading.source.matrix(name, spec.vocab_size, spec.hidden_size));
  }
  tensors.head.parts.push_back(std::move(part));
  return Done{};
}

}  // namespace muster::engine

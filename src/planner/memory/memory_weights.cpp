// Which share of a tensor one device holds is told by its name and shape, as files say nothing of
// how a runtime cuts them. Names of known parts come first (keys, joined projections, what every
// rank keeps whole); any other matrix of a block is cut evenly. A dimension of the size of the
// vocabulary marks embedding and head. Shares are rounded up, so that the sum over ranks is never
// short.

#include "planner/memory/memory_weights.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "planner/memory/kv_cache.h"
#include "planner/memory/memory_arithmetic.h"

namespace muster {
namespace {

// What a part of a tensor's dotted name says about how it is cut; as bits, since a name has several
// parts.
constexpr unsigned kKeysOrValues = 1;
constexpr unsigned kJoined = 2;
constexpr unsigned kWhole = 4;

struct KnownPart {
  std::string_view text;
  unsigned meaning;
};

// Module names by which the families of transformers and GGUF call what is not simply cut in t,
// sorted.
// Source: transformers 5.17, modeling_{bert,gpt2,gpt_neox,llama,phi3,mixtral,deepseek_v2,t5}.py;
// llama.cpp, gguf-py/gguf/constants.py (TENSOR_NAMES).
constexpr std::array<KnownPart, 22> kKnownParts{{
    {"Wqkv", kJoined},
    {"attn_k", kKeysOrValues},
    {"attn_kv_a_mqa", kWhole},
    {"attn_q_a", kWhole},
    {"attn_qkv", kJoined},
    {"attn_v", kKeysOrValues},
    {"c_attn", kJoined},
    {"ffn_gate_inp", kWhole},
    {"gate", kWhole},
    {"k", kKeysOrValues},
    {"k_proj", kKeysOrValues},
    {"key", kKeysOrValues},
    {"kv_a_proj_with_mqa", kWhole},
    {"q_a_proj", kWhole},
    {"qkv", kJoined},
    {"qkv_proj", kJoined},
    {"query_key_value", kJoined},
    {"router", kWhole},
    {"shared_expert_gate", kWhole},
    {"v", kKeysOrValues},
    {"v_proj", kKeysOrValues},
    {"value", kKeysOrValues},
}};
static_assert(std::ranges::is_sorted(kKnownParts, {}, &KnownPart::text));

/// The meanings of all parts of a name, together.
unsigned name_parts(std::string_view name) {
  unsigned meanings = 0;
  while (!name.empty()) {
    const auto end = std::min(name.find('.'), name.size());
    const auto part = name.substr(0, end);
    const auto found = std::ranges::lower_bound(kKnownParts, part, {}, &KnownPart::text);
    if (found != kKnownParts.end() && found->text == part) meanings |= found->meaning;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return meanings;
}

bool has_dimension(const WeightTensor& tensor, std::uint64_t size, bool or_multiple) {
  return size > 0 && std::any_of(tensor.shape.begin(), tensor.shape.end(), [&](std::int64_t n) {
           const auto dimension = static_cast<std::uint64_t>(n);
           return n > 0 && (or_multiple ? dimension % size == 0 : dimension == size);
         });
}

/// A device has `part` of `whole` equal pieces.
struct Cut {
  std::uint64_t part = 1;
  std::uint64_t whole = 1;
};

Cut block_cut(const LayerShape& layer, const WeightTensor& tensor, std::uint32_t t) {
  const std::uint64_t kv_heads = layer.kv_head_count;
  const auto parts = name_parts(tensor.name);
  if ((parts & kWhole) != 0) return {};
  if (layer.attention != AttentionKind::Latent && kv_heads > 0) {
    if ((parts & kKeysOrValues) != 0) return {kv_heads_here(layer, t), kv_heads};
    if ((parts & kJoined) != 0) {
      return {divide_up(layer.head_count, t) + 2 * kv_heads_here(layer, t),
              layer.head_count + 2 * kv_heads};
    }
  }
  const std::uint64_t wide = layer.intermediate_size;
  if (wide % t != 0 && has_dimension(tensor, wide, true)) return {divide_up(wide, t), wide};
  return {1, t};
}

Cut cut_of(const ModelDescription& model, const ModelUnit& unit, const WeightTensor& tensor,
           std::uint32_t t) {
  if (t <= 1 || tensor.shape.size() < 2) return {};
  const std::uint64_t vocab = model.shape.vocab_size;
  if (has_dimension(tensor, vocab, false)) return {divide_up(vocab, t), vocab};
  const bool is_layer = unit.kind == UnitKind::Block && unit.layer < model.shape.layers.size();
  return is_layer ? block_cut(model.shape.layers[unit.layer], tensor, t) : Cut{};
}

}  // namespace

std::uint64_t element_count(const WeightTensor& tensor) {
  std::uint64_t count = 1;
  for (const auto n : tensor.shape) {
    count = multiply_bytes(count, static_cast<std::uint64_t>(std::max<std::int64_t>(0, n)));
  }
  return count;
}

std::uint64_t loaded_bytes(const WeightTensor& tensor, std::optional<std::uint32_t> element_bytes) {
  const bool is_converted = element_bytes && (tensor.is_floating || tensor.is_blocked);
  return is_converted ? multiply_bytes(element_count(tensor), *element_bytes) : tensor.bytes;
}

std::uint64_t tensor_bytes(const ModelDescription& model, const ModelUnit& unit,
                           const WeightTensor& tensor, const WeightDemand& demand) {
  const auto bytes = loaded_bytes(tensor, demand.element_bytes);
  const auto cut = cut_of(model, unit, tensor, demand.tensor_parallel);
  return share_of(bytes, cut.part, cut.whole);
}

std::uint64_t unit_weight_bytes(const ModelDescription& model, const ModelUnit& unit,
                                const WeightDemand& demand) {
  std::uint64_t sum = 0;
  for (const auto index : unit.tensors) {
    sum = add_bytes(sum, tensor_bytes(model, unit, model.tensors[index], demand));
  }
  return sum;
}

std::uint64_t trained_elements(const ModelDescription& model, const ModelUnit& unit,
                               std::uint32_t tensor_parallel) {
  std::uint64_t sum = 0;
  for (const auto index : unit.tensors) {
    const auto& tensor = model.tensors[index];
    if (!tensor.is_floating) continue;
    const auto cut = cut_of(model, unit, tensor, tensor_parallel);
    sum = add_bytes(sum, share_of(element_count(tensor), cut.part, cut.whole));
  }
  return sum;
}

const WeightTensor* tied_matrix(const ModelDescription& model) {
  if (!model.shape.has_tied_head || model.tied_bytes == 0) return nullptr;
  for (const auto& unit : model.units) {
    if (unit.kind != UnitKind::Embedding) continue;
    for (const auto index : unit.tensors) {
      const auto& tensor = model.tensors[index];
      if (tensor.bytes == model.tied_bytes && has_dimension(tensor, model.shape.vocab_size, false))
        return &tensor;
    }
  }
  return nullptr;
}

}  // namespace muster

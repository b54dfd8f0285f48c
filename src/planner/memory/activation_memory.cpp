// The most that is alive at once in one unit of a decoder, as a maximum over named moments: each
// moment's live set is a sum of tensors, and none outlives the unit but its output. Sums saturate
// instead of wrapping, so that an absurd workload reads as "does not fit" and not as small. Flash
// attention keeps a float of each query and head, math attention the whole score matrix twice.
// Source: docs/memory-model.md, "Activations".

#include "planner/memory/activation_memory.h"

#include <algorithm>

#include "planner/memory/kv_cache.h"
#include "planner/memory/memory_arithmetic.h"

namespace muster {
namespace {

constexpr std::uint64_t kFloat = 4;
constexpr std::uint64_t kId = 8;

// B S size e
std::uint64_t rows_of(std::uint64_t size, const StepDemand& demand) {
  return multiply_bytes(demand.sequences, demand.tokens, size, demand.element_bytes);
}

std::uint64_t attention_peak(const LayerShape& layer, std::uint32_t hidden_size,
                             const StepDemand& demand) {
  const std::uint64_t heads = divide_up(layer.head_count, demand.tensor_parallel);
  const std::uint64_t value_size =
      layer.value_head_size > 0 ? layer.value_head_size : layer.head_size;
  const std::uint64_t key_and_value = layer.head_size + value_size;
  const auto x = rows_of(hidden_size, demand);
  const auto queries = rows_of(heads * layer.head_size, demand);
  const auto attended = rows_of(heads * value_size, demand);
  const auto keys_values =
      rows_of(kv_heads_here(layer, demand.tensor_parallel) * key_and_value, demand);

  auto scores = multiply_bytes(demand.sequences, heads, demand.tokens, kFloat);
  if (demand.math_attention) {
    scores = multiply_bytes(2, demand.sequences, heads, demand.tokens, demand.context,
                            demand.element_bytes);
  }
  if (layer.attention == AttentionKind::Latent) {
    scores = add_bytes(scores, multiply_bytes(demand.sequences, demand.context, heads,
                                              key_and_value, demand.element_bytes));
  }
  const auto project = add_bytes(x, x, queries, keys_values);
  const auto attend = add_bytes(x, queries, attended, scores);
  const auto join = add_bytes(x, x, attended);
  return std::max({project, attend, join});
}

std::uint64_t feed_forward_peak(const LayerShape& layer, std::uint32_t hidden_size,
                                const StepDemand& demand) {
  const auto x3 = multiply_bytes(3, rows_of(hidden_size, demand));
  const std::uint64_t wide = divide_up(layer.intermediate_size, demand.tensor_parallel);
  if (layer.expert_count == 0) return add_bytes(x3, rows_of(2 * wide, demand));
  const auto router = multiply_bytes(demand.sequences, demand.tokens, layer.expert_count, kFloat);
  const auto routed =
      multiply_bytes(layer.experts_per_token, rows_of(hidden_size + 2 * wide, demand));
  const auto shared = multiply_bytes(layer.shared_expert_count, rows_of(2 * wide, demand));
  return add_bytes(x3, router, routed, shared);
}

}  // namespace

std::uint64_t block_peak_bytes(const LayerShape& layer, std::uint32_t hidden_size,
                               const StepDemand& demand) {
  const auto feed = feed_forward_peak(layer, hidden_size, demand);
  if (layer.attention != AttentionKind::Recurrent) {
    return std::max(feed, attention_peak(layer, hidden_size, demand));
  }
  const auto state =
      multiply_bytes(demand.sequences, divide_up(layer.state_elements, demand.tensor_parallel),
                     demand.element_bytes);
  return std::max(feed, add_bytes(multiply_bytes(3, rows_of(hidden_size, demand)), state));
}

std::uint64_t embedding_peak_bytes(std::uint32_t hidden_size, const StepDemand& demand) {
  const auto ids = multiply_bytes(demand.sequences, demand.tokens, kId);
  return add_bytes(ids, multiply_bytes(2, rows_of(hidden_size, demand)));
}

std::uint64_t head_peak_bytes(std::uint32_t hidden_size, std::uint64_t rows,
                              const StepDemand& demand) {
  return add_bytes(rows_of(hidden_size, demand),
                   multiply_bytes(rows, hidden_size, demand.element_bytes));
}

std::uint64_t logits_bytes(std::uint32_t vocab_size, std::uint64_t rows,
                           std::uint32_t tensor_parallel) {
  const auto here = multiply_bytes(rows, divide_up(vocab_size, tensor_parallel), kFloat);
  const auto gathered = tensor_parallel > 1 ? multiply_bytes(rows, vocab_size, kFloat) : 0;
  return add_bytes(here, gathered);
}

}  // namespace muster

// What a training step keeps beside the weights; the formulas are in the header. A gated block
// keeps more of its feed-forward part (both branches and their product) but no dropout masks,
// because it is taken to train without dropout. Latent keys and values are counted expanded, as the
// backward pass needs them so. ZeRO divides by rounding up: the largest rank decides whether a
// model fits.

#include "planner/memory/training_memory.h"

#include <algorithm>

#include "planner/memory/kv_cache.h"
#include "planner/memory/memory_arithmetic.h"

namespace muster {
namespace {

constexpr std::uint64_t kFloat = 4;

std::uint64_t tokens_of(const MicrobatchDemand& demand) {
  return multiply_bytes(demand.sequences, demand.tokens);
}

/// Widths of a layer on one device.
struct Widths {
  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 0;
  std::uint64_t key_and_value = 0;
  std::uint64_t wide = 0;           // of all experts that a token passes
  std::uint64_t expert_inputs = 0;  // elements gathered for the experts beyond the one input
};

Widths widths_of(const LayerShape& layer, std::uint32_t hidden_size, std::uint32_t t) {
  const std::uint64_t value_size =
      layer.value_head_size > 0 ? layer.value_head_size : layer.head_size;
  Widths widths;
  widths.heads = divide_up(layer.head_count, t);
  widths.key_and_value = layer.head_size + value_size;
  // Latent keys and values are expanded for every head before attention, and kept so.
  widths.kv_heads =
      layer.attention == AttentionKind::Latent ? widths.heads : kv_heads_here(layer, t);
  const std::uint64_t expert_count =
      layer.expert_count == 0 ? 1
                              : std::uint64_t{layer.experts_per_token} + layer.shared_expert_count;
  widths.wide = multiply_bytes(expert_count, divide_up(layer.intermediate_size, t));
  widths.expert_inputs =
      layer.expert_count == 0 ? 0 : multiply_bytes(layer.experts_per_token, hidden_size);
  return widths;
}

}  // namespace

ElementStates element_states(TrainingPrecision precision) {
  switch (precision) {
    case TrainingPrecision::Fp32:
      return {.weight = 4, .gradient = 4, .optimizer = 8};
    case TrainingPrecision::Mixed:
      return {.weight = 2, .gradient = 2, .optimizer = 12};
    case TrainingPrecision::MixedFp32Grad:
      return {.weight = 2, .gradient = 4, .optimizer = 12};
    case TrainingPrecision::Bf16:
      return {.weight = 2, .gradient = 2, .optimizer = 4};
  }
  return {};
}

TrainingStates training_states(std::uint64_t elements, const TrainingOptions& options) {
  const auto states = element_states(options.precision);
  const auto ranks_from = [&](std::uint32_t stage) {
    return options.zero_stage >= stage ? std::max<std::uint64_t>(1, options.data_parallel) : 1;
  };
  const auto part = [&](std::uint32_t bytes, std::uint32_t stage) {
    return multiply_bytes(divide_up(elements, ranks_from(stage)), bytes);
  };
  TrainingStates result;
  result.weights = part(states.weight, 3);
  result.gradients = part(states.gradient, 2);
  result.optimizer = part(states.optimizer, 1);
  if (ranks_from(3) > 1) {
    result.gathered = multiply_bytes(elements, std::uint64_t{states.weight} + states.gradient);
  }
  return result;
}

std::uint64_t layer_kept_bytes(const LayerShape& layer, std::uint32_t hidden_size,
                               const MicrobatchDemand& demand) {
  const auto widths = widths_of(layer, hidden_size, demand.tensor_parallel);
  const std::uint64_t e = demand.element_bytes;
  // Of one token: both normalisations' inputs and outputs; queries, keys, values and the attended
  // rows; the feed-forward part; the experts' gathered inputs.
  const std::uint64_t attention_count = layer.has_cross_attention ? 2 : 1;
  const std::uint64_t part_count = attention_count + 1;
  const auto attention = multiply_bytes(widths.heads + widths.kv_heads, widths.key_and_value);
  const auto elements = add_bytes(
      multiply_bytes(2 * part_count, hidden_size), multiply_bytes(attention_count, attention),
      multiply_bytes(layer.is_gated ? 4 : 2, widths.wide), widths.expert_inputs);
  const std::uint64_t of_a_score = layer.is_gated ? e : 2 * e + 1;
  const auto scores = demand.flash_attention
                          ? multiply_bytes(kFloat, widths.heads)
                          : multiply_bytes(of_a_score, demand.tokens, widths.heads);
  const auto dropout_masks = layer.is_gated ? 0 : multiply_bytes(part_count, hidden_size);
  const auto bytes =
      add_bytes(multiply_bytes(e, elements), multiply_bytes(attention_count, scores), dropout_masks,
                part_count * kFloat, multiply_bytes(kFloat, layer.expert_count));
  return multiply_bytes(tokens_of(demand), bytes);
}

std::uint64_t layer_input_bytes(std::uint32_t hidden_size, const MicrobatchDemand& demand) {
  return multiply_bytes(tokens_of(demand), hidden_size, demand.element_bytes);
}

std::uint64_t layer_backward_bytes(const LayerShape& layer, std::uint32_t hidden_size,
                                   const MicrobatchDemand& demand) {
  const auto widths = widths_of(layer, hidden_size, demand.tensor_parallel);
  const auto feed = multiply_bytes(2, tokens_of(demand), widths.wide, demand.element_bytes);
  const auto scores = demand.flash_attention ? 0
                                             : multiply_bytes(2, tokens_of(demand), demand.tokens,
                                                              widths.heads, demand.element_bytes);
  return add_bytes(multiply_bytes(2, layer_input_bytes(hidden_size, demand)),
                   std::max(feed, scores));
}

}  // namespace muster

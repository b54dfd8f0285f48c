#pragma once

#include <cstdint>

#include "spec/model_shape.h"

namespace muster {

/// One step of a decoder (prefill: `tokens` of every sequence; decode: 1).
struct StepDemand {
  std::uint64_t sequences = 1;        // B
  std::uint64_t tokens = 1;           // S: of one sequence in this step
  std::uint64_t context = 1;          // T: of one sequence that attention sees
  std::uint64_t element_bytes = 2;    // e
  std::uint32_t tensor_parallel = 1;  // t
  bool math_attention = false;        // scores and weights of all heads are made in memory
};

/// The most that is alive at once inside a layer of the plain block: normalisation, attention, sum,
/// normalisation, feed-forward, sum. With X = B S hidden e, and what t devices share divided by t:
///
///   project   2 X + B S (heads head_size + kv_heads (head_size + value_size)) e
///   attend    X + B S heads (head_size + value_size) e + scores
///             scores: math 2 B heads S T e, else B heads S 4 (the logarithms of the sums)
///             latent: + B T heads (head_size + value_size) e, keys and values from the latents
///   join      2 X + B S heads value_size e
///   feed      3 X + 2 B S intermediate e
///   experts   3 X + B S expert_count 4 + B S experts_per_token (hidden + 2 intermediate) e
///             + 2 B S shared_expert_count intermediate e
///   state     3 X + B state_elements e
///
/// Source: docs/memory-model.md, "Activations", which draws each set.
std::uint64_t block_peak_bytes(const LayerShape& layer, std::uint32_t hidden_size,
                               const StepDemand& demand);

/// Ids, word rows and their sum with the positions: B S 8 + 2 X.
std::uint64_t embedding_peak_bytes(std::uint32_t hidden_size, const StepDemand& demand);

/// The state and the normalised rows that the head multiplies: X + rows hidden e.
std::uint64_t head_peak_bytes(std::uint32_t hidden_size, std::uint64_t rows,
                              const StepDemand& demand);

/// Float32 logits: rows x divide_up(vocab, t) x 4, and where t > 1 the gathered rows x vocab x 4.
std::uint64_t logits_bytes(std::uint32_t vocab_size, std::uint64_t rows,
                           std::uint32_t tensor_parallel);

}  // namespace muster

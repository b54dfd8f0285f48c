#pragma once

#include <cstdint>

#include "spec/model_shape.h"
#include "spec/workload.h"

namespace muster {

/// Bytes that one trained element takes. Source: docs/memory-model.md, "Training"; ZeRO, arXiv
/// 1910.02054, section 3.1 (2 + 2 + 12); Megatron-LM, theoretical_memory_usage.py (18 with float32
/// gradients).
struct ElementStates {
  std::uint32_t weight = 0;
  std::uint32_t gradient = 0;
  std::uint32_t optimizer = 0;  // both AdamW moments, and the master weight where there is one
};

ElementStates element_states(TrainingPrecision precision);

/// States of `elements` on one rank of `options.data_parallel`.
///
/// Stage 1 divides the optimizer's part, 2 the gradients too, 3 the weights too; stage 3 holds the
/// whole weights and gradients of the unit that computes, `gathered`.
/// Source: ZeRO, arXiv 1910.02054, section 5.
struct TrainingStates {
  std::uint64_t weights = 0;
  std::uint64_t gradients = 0;
  std::uint64_t optimizer = 0;
  std::uint64_t gathered = 0;
};

TrainingStates training_states(std::uint64_t elements, const TrainingOptions& options);

/// One micro-batch.
struct MicrobatchDemand {
  std::uint64_t sequences = 1;        // B
  std::uint64_t tokens = 1;           // s
  std::uint64_t element_bytes = 2;    // e
  std::uint32_t tensor_parallel = 1;  // t, without sequence parallelism
  bool flash_attention = true;
};

/// What the backward pass needs of a layer's forward pass. Per token, with what t devices share
/// divided by t, `wide` the intermediate size (of experts_per_token and the shared experts):
///
///   gated  e (4 hidden + heads (head_size + value_size) + kv_heads (head_size + value_size)
///             + 4 wide) + 8, and e T heads for math attention
///   plain  e (4 hidden + the same + 2 wide) + 2 hidden + 8, and (2 e + 1) T heads
///
/// Flash attention keeps 4 heads instead of the T term; a router 4 expert_count more, and the
/// experts' gathered inputs; cross-attention the attention part once more. 4 bytes a normalisation
/// are its statistics. For multi-head attention, wide = 4 hidden
/// and e = 2 the plain form is B s hidden (34 + 5 heads s / hidden) but for the 8 bytes of the
/// normalisations. Source: Korthikanti et al. 2022, arXiv 2205.05198, section 4 (plain);
/// docs/memory-model.md, "Training", derives the gated form.
std::uint64_t layer_kept_bytes(const LayerShape& layer, std::uint32_t hidden_size,
                               const MicrobatchDemand& demand);

/// A layer's input alone: B s hidden e, what recomputation keeps.
std::uint64_t layer_input_bytes(std::uint32_t hidden_size, const MicrobatchDemand& demand);

/// Gradients alive in a layer's backward pass: of its output, its input and both sides of the
/// feed-forward part (or of the attention matrix, if that is more).
std::uint64_t layer_backward_bytes(const LayerShape& layer, std::uint32_t hidden_size,
                                   const MicrobatchDemand& demand);

}  // namespace muster

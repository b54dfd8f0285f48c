#pragma once

#include <cstdint>
#include <optional>

#include "planner/memory/memory_dtype.h"
#include "spec/model_weights.h"

namespace muster {

/// How weights are loaded: the bytes of a converted float element (nullopt: as stored), and over
/// how many devices the matrices are cut.
struct WeightDemand {
  std::optional<std::uint32_t> element_bytes = std::nullopt;
  std::uint32_t tensor_parallel = 1;
};

/// Elements of a tensor; the product of its shape.
std::uint64_t element_count(const WeightTensor& tensor);

/// Bytes of a whole tensor as it is loaded. Floating tensors of 16 bits or more are converted to
/// the load dtype, and so are ggml's blocks, whose quantisation is undone; integers stay as they
/// are, packed ones (GPTQ, AWQ) among them.
///
/// Source: src/engine/decoder/panel_matrix.h, weight_format.
std::uint64_t loaded_bytes(const WeightTensor& tensor, std::optional<std::uint32_t> element_bytes);

/// Bytes of one tensor of `unit` on one device, as loaded.
///
/// Of `tensor_parallel` devices each has
///
///   rank 0 and 1 (norms, biases), position tables, routers, latent down-projections: all of it
///   the vocabulary's matrices:        divide_up(vocab, t) / vocab (padded to a multiple of t)
///   keys' and values' projections:    divide_up(kv_heads, t) / kv_heads
///   the joined projection:            (heads / t + 2 divide_up(kv_heads, t)) / (heads + 2
///   kv_heads) feed-forward matrices:            divide_up(intermediate, t) / intermediate every
///   other matrix of a block:    1 / t
///
/// rounded up to whole bytes. Biases of split matrices are counted whole: an upper bound.
///
/// Source: Shoeybi et al. 2019, arXiv 1909.08053, section 3 (columns, rows, vocabulary);
/// vllm/model_executor/layers/linear.py, QKVParallelLinear (copied KV heads), ReplicatedLinear.
std::uint64_t tensor_bytes(const ModelDescription& model, const ModelUnit& unit,
                           const WeightTensor& tensor, const WeightDemand& demand);

/// The sum over the unit's tensors.
std::uint64_t unit_weight_bytes(const ModelDescription& model, const ModelUnit& unit,
                                const WeightDemand& demand);

/// Elements that a training run keeps states for: those of floating tensors, cut like the bytes.
std::uint64_t trained_elements(const ModelDescription& model, const ModelUnit& unit,
                               std::uint32_t tensor_parallel);

/// The embedding's matrix that a tied head reads; nullptr: the head has its own.
const WeightTensor* tied_matrix(const ModelDescription& model);

}  // namespace muster

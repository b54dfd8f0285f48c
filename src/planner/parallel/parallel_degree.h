#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "spec/machine.h"
#include "spec/model_shape.h"
#include "topology/node_topology.h"

namespace muster {

/// The degrees of tensor parallelism up to `most` that cut every layer into equal parts: they
/// divide the attention heads and the feed-forward width, and divide the KV heads or are a multiple
/// of them, which are then copied. 1 is always among them; encoders are copied whole, so for them
/// it is the only one.
///
/// Source: Shoeybi et al., arXiv 1909.08053, section 3; vLLM 0.11, model_executor/models/llama.py
/// (KV heads replicated where there are fewer than ranks).
std::vector<std::uint32_t> legal_tensor_degrees(const ModelShape& shape, std::uint32_t most);

/// Rows of the embedding and head once each of `degree` ranks has as many.
///
/// Source: vLLM 0.11, layers/vocab_parallel_embedding.py: a multiple of 64, divided by the ranks.
std::uint64_t padded_vocab(std::uint64_t vocab_size, std::uint32_t degree);

/// Groups of `degree` equal devices among `devices`: within a node, on one island where NVLink or
/// Infinity Fabric makes any, the best linked together. Slices of GPUs are in no group. Devices
/// that are left over are in none. In the order of their first device.
std::vector<DeviceGroup> tensor_groups(const Machine& machine,
                                       std::span<const std::uint32_t> devices,
                                       std::uint32_t degree);

/// Whether the model and these devices allow the degree.
///
/// Errors: InvalidArgument in one sentence, with the degrees that are legal: "3 does not divide the
/// 32 attention heads: 1, 2, 4, 8 do".
Status check_tensor_degree(const ModelShape& shape, const Machine& machine,
                           std::span<const std::uint32_t> devices, std::uint32_t degree);

/// Those of `legal_tensor_degrees` that the machine has at least one group for.
std::vector<std::uint32_t> possible_tensor_degrees(const ModelShape& shape, const Machine& machine,
                                                   std::span<const std::uint32_t> devices);

}  // namespace muster

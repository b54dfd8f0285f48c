#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace muster::engine {

/// The bucket of a key that stands `offset` places after the query: near places have their own, far
/// ones share by logarithm up to 128, and the two directions halve the buckets.
///
/// Source: Raffel et al. 2020 (T5), as in transformers 5.17, modeling_mpnet.py,
/// `relative_position_bucket`, in float32 as there.
std::uint32_t relative_position_bucket(std::int64_t offset, std::uint32_t bucket_count);

/// The bias of every offset: [heads, 2 x length_max - 1], offset 0 in the middle of a row, as
/// `AttentionShape::relative_bias` wants it.
///
/// Shapes: bias [buckets, heads].
std::vector<float> relative_bias_by_offset(std::span<const float> bias, std::uint32_t bucket_count,
                                           std::uint32_t head_count, std::uint32_t length_max);

}  // namespace muster::engine

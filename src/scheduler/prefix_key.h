#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"

namespace muster {

/// Names what a block of a decoder's cache holds: the ids of its positions and of all before them,
/// and who may share it. A chain: each block's key is made of the one before and of its own ids.
/// Equal keys are a strong hint and no proof.
///
/// Source: Kwon et al. 2023, "Efficient Memory Management for Large Language Model Serving",
/// section 4.4 (shared prefixes); vLLM, docs/design/prefix_caching.md (the chain of hashes).
using PrefixKey = HashValue;

/// What the first block's key is made of. scope: only sequences of one scope share blocks.
PrefixKey prefix_root(std::uint64_t scope);

/// The key of a block that holds `ids`, behind the block of `before` or a root.
PrefixKey next_prefix_key(const PrefixKey& before, std::span<const std::uint32_t> ids);

/// The keys of all blocks that `ids` fill, in their order; a last one that is not full has none.
std::vector<PrefixKey> prefix_keys(std::uint64_t scope, std::span<const std::uint32_t> ids,
                                   std::uint32_t block_tokens);

/// For tables; the bits of a key are as good as random.
struct PrefixKeyHash {
  std::size_t operator()(const PrefixKey& key) const { return key.low; }
};

}  // namespace muster

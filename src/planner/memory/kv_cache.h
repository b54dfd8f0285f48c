#pragma once

#include <cstdint>

#include "planner/memory/memory_dtype.h"
#include "spec/model_shape.h"

namespace muster {

/// What a cache must hold, and how it is stored.
struct CacheDemand {
  std::uint64_t sequences = 1;
  std::uint64_t tokens = 0;           // of each sequence
  CacheFormat format = {};            // of keys, values and latents
  std::uint32_t state_bytes = 2;      // of an element of a recurrent state: never quantised
  std::uint32_t block = 1;            // tokens allocated at once; 1: not paged
  bool keeps_window_only = true;      // false: a sliding window's layer keeps every token
  std::uint32_t tensor_parallel = 1;  // devices that share the heads
};

/// Heads of keys and values that one of `tensor_parallel` devices holds: its share, or a copy of
/// one head where there are more devices than heads.
std::uint64_t kv_heads_here(const LayerShape& layer, std::uint32_t tensor_parallel);

/// Bytes of one layer's cache on one device.
///
///   full     sequences x tokens x kv_heads x (bytes(head_size) + bytes(value_head_size))
///   window   the same with min(tokens, window)
///   latent   sequences x tokens x bytes(latent_size + rope_size), whole on every device
///   state    sequences x state_elements x state_bytes
///   cross    as full, once more, for the tokens of the encoder (at most `tokens`)
///
/// `tokens` are rounded up to whole blocks; bytes(n) is that of a vector in the format. An
/// encoder's layer has none.
///
/// Source: Kwon et al. 2023, arXiv 2309.06180, section 3 (full, blocks); Jiang et al. 2023, arXiv
/// 2310.06825, section 2 (window); DeepSeek-V2, arXiv 2405.04434, section 2.1.2 (latent); Raffel
/// et al. 2020, arXiv 1910.10683, section 2.1 (cross-attention).
std::uint64_t layer_cache_bytes(const LayerShape& layer, const CacheDemand& demand);

}  // namespace muster

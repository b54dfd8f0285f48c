// Bytes of a cache by kind of attention; the formulas are in the header. A paged cache is taken in
// whole blocks, by layer and sequence, so short sequences pay for a started block. A window saves
// memory only in an engine that drops what left it, hence the flag. Latent caches are not cut by
// tensor parallelism, since every rank needs the whole latent vector to rebuild its own heads.

#include "planner/memory/kv_cache.h"

#include <algorithm>

#include "planner/memory/memory_arithmetic.h"

namespace muster {
namespace {

std::uint64_t whole_blocks(std::uint64_t tokens, const CacheDemand& demand) {
  const std::uint64_t block = std::max<std::uint32_t>(1, demand.block);
  return multiply_bytes(divide_up(tokens, block), block);
}

// Keys and values of one token on one device.
std::uint64_t token_bytes(const LayerShape& layer, const CacheDemand& demand) {
  const auto value_size = layer.value_head_size > 0 ? layer.value_head_size : layer.head_size;
  return multiply_bytes(
      kv_heads_here(layer, demand.tensor_parallel),
      add_bytes(demand.format.bytes_of(layer.head_size), demand.format.bytes_of(value_size)));
}

std::uint64_t sequence_bytes(const LayerShape& layer, const CacheDemand& demand) {
  switch (layer.attention) {
    case AttentionKind::Full:
      return multiply_bytes(whole_blocks(demand.tokens, demand), token_bytes(layer, demand));
    case AttentionKind::SlidingWindow: {
      const bool is_cut = demand.keeps_window_only && layer.window > 0;
      const auto tokens =
          is_cut ? std::min<std::uint64_t>(demand.tokens, layer.window) : demand.tokens;
      return multiply_bytes(whole_blocks(tokens, demand), token_bytes(layer, demand));
    }
    case AttentionKind::Latent:
      return multiply_bytes(
          whole_blocks(demand.tokens, demand),
          demand.format.bytes_of(std::uint64_t{layer.latent_size} + layer.rope_size));
    case AttentionKind::Recurrent:
      return multiply_bytes(divide_up(layer.state_elements, demand.tensor_parallel),
                            demand.state_bytes);
  }
  return 0;
}

}  // namespace

std::uint64_t kv_heads_here(const LayerShape& layer, std::uint32_t tensor_parallel) {
  return divide_up(layer.kv_head_count, tensor_parallel);
}

std::uint64_t layer_cache_bytes(const LayerShape& layer, const CacheDemand& demand) {
  if (layer.is_encoder) return 0;
  auto bytes = sequence_bytes(layer, demand);
  if (layer.has_cross_attention) {
    bytes = add_bytes(
        bytes, multiply_bytes(whole_blocks(demand.tokens, demand), token_bytes(layer, demand)));
  }
  return multiply_bytes(demand.sequences, bytes);
}

}  // namespace muster

// How much of a worker's memory is for keys and values, and how long a prompt and its reply may be.

#include "jobs/decoder_cache.h"

#include <algorithm>

namespace muster {
namespace {

constexpr std::uint64_t kBlockTokens = 16;  // of a cache's block
// So many prompts of full length have room in the cache where memory allows it.
constexpr std::uint64_t kFullLengths = 4;
// Of the memory that is free; weights and activations want most of it.
constexpr std::uint64_t kShareOfMemory = 4;
constexpr std::uint64_t kBytesLeast = std::uint64_t{256} << 20;

}  // namespace

std::uint64_t token_cache_bytes(const DecoderSpec& spec, KvCacheDtype kept) {
  return 2 * std::uint64_t{spec.layer_count} * spec.kv_head_count *
         kv_vector_bytes(kept, spec.head_size);
}

std::uint64_t cache_bytes_most(const DecoderSpec& spec, KvCacheDtype kept,
                               std::uint32_t sequences_most) {
  const std::uint64_t tokens =
      (std::uint64_t{spec.length_max} + kBlockTokens - 1) / kBlockTokens * kBlockTokens;
  return sequences_most * tokens * token_cache_bytes(spec, kept);
}

DecoderCache cache_of(const DecoderSpec& spec, KvCacheDtype kept, std::uint32_t length_most,
                      std::uint64_t bytes) {
  const auto of_token = std::max<std::uint64_t>(1, token_cache_bytes(spec, kept));
  const auto tokens = bytes / of_token / kBlockTokens * kBlockTokens;
  return {bytes, static_cast<std::uint32_t>(std::min<std::uint64_t>(length_most, tokens))};
}

DecoderCache fit_cache(const DecoderSpec& spec, KvCacheDtype kept, std::uint32_t length_most,
                       const WorkerMemory& memory) {
  const auto of_token = std::max<std::uint64_t>(1, token_cache_bytes(spec, kept));
  const auto [free_bytes, other_bytes] = memory;
  const auto left = free_bytes > other_bytes ? free_bytes - other_bytes : 0;
  const auto most = std::max(kBytesLeast, std::min(free_bytes / kShareOfMemory, left));
  return cache_of(spec, kept, length_most,
                  std::min(most, kFullLengths * (length_most + kBlockTokens) * of_token));
}

DecoderCache cache_for(const DecoderSpec& spec, KvCacheDtype kept, std::uint32_t length_most,
                       const WorkerMemory& memory) {
  const auto fitting = fit_cache(spec, kept, length_most, memory);
  const auto wanted = (length_most + kBlockTokens) * token_cache_bytes(spec, kept);
  return {std::max(fitting.bytes, wanted), length_most};
}

}  // namespace muster

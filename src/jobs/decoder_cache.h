#pragma once

#include <cstdint>

#include "spec/decoder_spec.h"
#include "spec/generation.h"

namespace muster {

/// Keys and values of one token, in the worker. Bytes. kept, here and below: not Auto.
std::uint64_t token_cache_bytes(const DecoderSpec& spec, KvCacheDtype kept);

/// Room for the keys and values of a worker's replies.
struct DecoderCache {
  std::uint64_t bytes = 0;
  std::uint32_t length_most = 0;  // tokens of a prompt and its reply that surely fit
};

/// The memory of a worker.
struct WorkerMemory {
  std::uint64_t free_bytes = 0;
  std::uint64_t other_bytes = 0;  // of these, for weights and a step; 0: not known
};

/// Room for four prompts and replies of `length_most` tokens, but at most for a quarter of the
/// memory that is free, and for what is left beside the rest; 256 MiB at least. With less room than
/// one takes, that one is shorter. Threads: pure.
DecoderCache fit_cache(const DecoderSpec& spec, KvCacheDtype kept, std::uint32_t length_most,
                       const WorkerMemory& memory);

/// What so many sequences of the model's longest context fill: a worker's cache is no larger.
std::uint64_t cache_bytes_most(const DecoderSpec& spec, KvCacheDtype kept,
                               std::uint32_t sequences_most);

/// Of so many bytes, whatever is free. With less room than a prompt and reply of `length_most`
/// take, they are shorter.
DecoderCache cache_of(const DecoderSpec& spec, KvCacheDtype kept, std::uint32_t length_most,
                      std::uint64_t bytes);

/// As `fit_cache`, with room for one of `length_most` tokens whatever is free.
DecoderCache cache_for(const DecoderSpec& spec, KvCacheDtype kept, std::uint32_t length_most,
                       const WorkerMemory& memory);

}  // namespace muster

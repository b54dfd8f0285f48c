#pragma once

#include <cstdint>

#include "base/result.h"
#include "deploy/container_request.h"

namespace muster {

/// Whether a server can split attention `tensor` ways: query heads divide, and so do key-value
/// heads; vLLM also keeps a copy of each key-value head where there are fewer heads than shards.
/// Unknown heads forbid nothing.
///
/// Sources: TGI 3.3, flash_*_modeling.py ("`num_heads` must be divisible by `num_shards`";
/// key-value heads by integer division); vLLM, models' attention (total_num_kv_heads % tp_size == 0
/// or tp_size % total_num_kv_heads == 0).
bool can_split_heads(ServerApi api, std::uint32_t tensor, const ModelHeads& heads);

/// The split for `device_count` devices. TGI has tensor parallelism alone; vLLM takes the largest
/// legal tensor split and pipeline stages for the rest. With unknown heads vLLM's tensor split is
/// the largest power of two that divides the count, so that three devices never become three tensor
/// shards (GPUStack #2259), and TGI's is the count. TEI: 1, it has no split (TEI #349); muster: 1,
/// each of its devices has a whole copy.
///
/// Errors: InvalidArgument, naming the counts up to `device_count` that do work.
Result<ShardCounts> choose_shards(ServerApi api, std::uint32_t device_count,
                                  const ModelHeads& heads);

}  // namespace muster

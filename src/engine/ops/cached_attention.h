#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace muster::engine {

/// Where the rows of each sequence stand. Shapes: offsets [sequences + 1] int32 on the device, the
/// last ones the counts of all.
struct AttentionSpans {
  at::Tensor query_offsets;
  at::Tensor key_offsets;
  std::int64_t longest_query = 0;  // no sequence has more rows
  std::int64_t longest_key = 0;
};

struct AttentionRule {
  double scale = 1;         // of query . key
  std::int64_t window = 0;  // a query sees so many keys, its own the last; 0: all up to its own
};

/// Attention of the last tokens of sequences over all of their keys, on a GPU: the last query of a
/// sequence sees up to its last key, the one before it up to the one before that. Fewer heads of
/// keys than of queries serve a group each. A sequence's rows do not depend on the other sequences:
/// neither kernel divides one sequence's keys among blocks of threads by how many there are.
///
/// Shapes: query [rows, heads, size]; keys and values [keys, kv heads, size], all of one type;
/// those beyond the last offset are not read. The result is [rows, heads, size]. Errors: throws
/// what torch throws. Source: torch 2.11, aten/src/ATen/native/transformers/cuda: attention.cu,
/// mem_eff_attention/kernel_forward.h, flash_attn/flash_api.cpp.
at::Tensor attend_cached(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                         const AttentionSpans& spans, const AttentionRule& rule);

}  // namespace muster::engine

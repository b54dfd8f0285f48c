// torch has two kernels for packed sequences, neither of them public, both registered operators.
// Flash attention shares a head of keys among a group of queries and computes types of 16 bits; the
// memory-efficient kernel computes float32, for which heads of keys are repeated.

#include "engine/ops/cached_attention.h"

#include <ATen/ops/_efficient_attention_forward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/constant_pad_nd.h>

#include <algorithm>
#include <optional>
#include <tuple>

namespace muster::engine {
namespace {

// What both kernels want of a head's size, in elements. Source: torch 2.11,
// mem_eff_attention/kernel_forward.h, kAlignmentQ for 16-bit types; flash_api.cpp, mha_varlen_fwd.
constexpr std::int64_t kAlignment = 8;

constexpr std::int64_t kCausalFromBottomRight = 2;  // kernel_forward.h, CustomMaskType

// With one query a sequence mha_varlen_fwd takes the path for decoding, which divides a sequence's
// keys among blocks of threads by how many sequences there are, and with them the order of sums.
// The bound of 2 for a longest query of 1 keeps it from that.
constexpr std::int64_t kLongestQueryLeast = 2;

at::Tensor padded(const at::Tensor& heads) {
  const auto rest = heads.size(2) % kAlignment;
  return rest == 0 ? heads : at::constant_pad_nd(heads, {0, kAlignment - rest});
}

// [keys, kv heads, size] -> [keys, heads, size], each as often as its group has queries. Of one
// head `reshape` gives a view without a stride from head to head. For those the kernel takes the
// heads of a lone query as rows of a block, and with more heads than such rows it reads and writes
// past the end. Source: torch 2.11, mem_eff_attention/kernel_forward.h, advance_to_block
// (`k_strideH`).
at::Tensor repeated(const at::Tensor& heads, std::int64_t head_count) {
  const auto group = head_count / heads.size(1);
  if (group == 1) return heads;
  return heads.unsqueeze(2)
      .expand({heads.size(0), heads.size(1), group, heads.size(2)})
      .reshape({heads.size(0), head_count, heads.size(2)})
      .contiguous();
}

at::Tensor attend_efficiently(const at::Tensor& query, const at::Tensor& keys,
                              const at::Tensor& values, const AttentionSpans& spans,
                              const AttentionRule& rule) {
  const auto heads = query.size(1);
  const auto window = rule.window > 0 ? std::optional(rule.window) : std::nullopt;
  return std::get<0>(at::_efficient_attention_forward(
                         query.unsqueeze(0), repeated(keys, heads).unsqueeze(0),
                         repeated(values, heads).unsqueeze(0), /*bias=*/{}, spans.query_offsets,
                         spans.key_offsets, spans.longest_query, spans.longest_key,
                         /*dropout_p=*/0.0, kCausalFromBottomRight, /*compute_log_sumexp=*/false,
                         rule.scale, /*seqlen_k=*/{}, window))
      .squeeze(0);
}

at::Tensor attend_by_flash(const at::Tensor& query, const at::Tensor& keys,
                           const at::Tensor& values, const AttentionSpans& spans,
                           const AttentionRule& rule) {
  // So many keys before its own; flash attention is causal from the bottom right.
  const auto left = rule.window > 0 ? std::optional(rule.window - 1) : std::nullopt;
  // mha_varlen_fwd drops a window that is no shorter than the longest sequence, and then takes
  // another kernel, with other tiles on sm_86 and sm_89: what a sequence gets would depend on how
  // long the others are. Source: torch 2.11, aten/src/ATen/native/transformers/cuda/flash_attn/
  // flash_api.cpp, mha_varlen_fwd (`window_size_left >= max_seqlen_k`).
  const auto longest_key = std::max(spans.longest_key, rule.window);
  return std::get<0>(at::_flash_attention_forward(
      query, keys, values, spans.query_offsets, spans.key_offsets,
      std::max(kLongestQueryLeast, spans.longest_query), longest_key, /*dropout_p=*/0.0,
      /*is_causal=*/true, /*return_debug_mask=*/false, rule.scale, left));
}

}  // namespace

at::Tensor attend_cached(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                         const AttentionSpans& spans, const AttentionRule& rule) {
  const bool is_wide = query.scalar_type() == at::kFloat;
  const auto attend = is_wide ? attend_efficiently : attend_by_flash;
  return attend(padded(query), padded(keys), padded(values), spans, rule)
      .narrow(2, 0, query.size(2));
}

}  // namespace muster::engine

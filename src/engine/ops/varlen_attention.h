#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace muster::engine {

/// Attention of texts that stand one behind the other, each over its own tokens alone, scaled by
/// 1 / sqrt(head size). On a GPU by torch's memory-efficient kernel, which takes offsets and every
/// precision; elsewhere text by text. A text's rows do not depend on the other texts: the kernel
/// computes each by itself in one order (tested on a GPU: GpuTest).
///
/// Shapes: qkv [rows, 3, heads, head size]; offsets [texts + 1] int32 on its device, the last one
/// `rows`; bias: undefined, or what `shared_bias` made; the result is [rows, heads x head size].
/// Source: torch 2.11, aten/src/ATen/native/transformers/cuda/mem_eff_attention/kernel_forward.h.
at::Tensor attend_texts(const at::Tensor& qkv, const at::Tensor& offsets, std::int64_t longest,
                        const at::Tensor& bias);

/// One bias for all texts: [heads, size, size] of query and key, in storage that is long enough for
/// `row_count` rows. The kernel wants a bias of all rows against all rows, and reads of it only the
/// places of a text, so the same table may stand for every text.
///
/// Shapes: by_offset [heads, offsets], offset 0 in the middle; length_max: the longest text.
at::Tensor shared_bias(const at::Tensor& by_offset, std::int64_t length_max,
                       std::int64_t row_count);

}  // namespace muster::engine

#pragma once

#include <ATen/core/Tensor.h>

#include "spec/encoder_spec.h"

namespace muster::engine {

/// One vector for each text, on the device of its rows: `pool_tokens` and `normalize_row`
/// (ops/pooling.h) for many texts at once. A text's tokens are added in their order, whatever else
/// is in the pass.
///
/// Shapes: hidden [rows, dim]; offsets [texts + 1] int32, where each text begins, and the end of
/// the last; the result is [texts, dim] float32, undefined values for an empty text.
/// Source: torch 2.11, aten/src/ATen/native/cuda/SegmentReduce.cu.
at::Tensor pool_texts(Pooling pooling, const at::Tensor& hidden, const at::Tensor& offsets);

/// Scales every row to length 1. It is RMS normalisation over sqrt(dim), whose kernel takes a row
/// by itself, where a sum over many rows may be split by their number.
at::Tensor normalize_rows(const at::Tensor& rows);

}  // namespace muster::engine

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "modelfile/gguf.h"

namespace muster {

/// Ids of the ggml types that are dequantised. Source: ggml.h, enum ggml_type.
enum class GgmlTypeId : std::uint32_t {
  F32 = 0,
  F16 = 1,
  Q4_0 = 2,
  Q4_1 = 3,
  Q5_0 = 6,
  Q5_1 = 7,
  Q8_0 = 8,
  Q4_K = 12,
  Q5_K = 13,
  Q6_K = 14,
  BF16 = 30,
};

/// Whether `dequantize` knows the type.
bool can_dequantize(const GgmlType& type);

/// Turns whole blocks of `type` into floats, exactly as ggml's reference functions do, bit for bit:
/// each value is computed in float32 from its block's scales in the order written in
/// docs/formats/gguf.md.
///
/// Shapes: bytes: n blocks; out: n x type.block_elements. Any n, so that a caller may take a row or
/// a range of rows.
/// Threads: pure; callers may share the bytes.
/// Errors: Unsupported for another type, by name; InvalidArgument when the sizes do not agree.
/// Source: ggml-quants.c of llama.cpp, dequantize_row_*.
Status dequantize(const GgmlType& type, std::span<const std::byte> bytes, std::span<float> out);

/// The value of an IEEE half or a bfloat16 given by its bits, subnormals, infinities and NaN
/// included.
float half_to_float(std::uint16_t bits);
float bfloat16_to_float(std::uint16_t bits);

}  // namespace muster

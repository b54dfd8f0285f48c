#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "engine/ops/panel_weight.h"

namespace muster::engine {

/// A block of ggml's Q8_0 as it stands in a file: a scale d in float16 and 32 quants of a byte.
using Q8Block = std::array<std::byte, 34>;

/// The block that stands for 32 floats: d = max |x| / 127, q = x / d to the nearest, halves away
/// from zero, by the d that is not yet rounded to float16.
///
/// The scale is no number where a value is none, or so large that no float16 holds its scale: what
/// such a weight reaches is to fail, and not to be near.
/// Source: ggml-quants.c of llama.cpp 01243c58, quantize_row_q8_0_ref.
Q8Block q8_0_block(std::span<const float, kBlockInputs> values);

}  // namespace muster::engine

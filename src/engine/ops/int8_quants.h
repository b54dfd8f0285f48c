#pragma once

#include <cstdint>
#include <span>

namespace muster::engine {

/// Weights of one output in 8 bits with one scale: each 64 values go through the Hadamard transform
/// of hadamard.h, then d = max |x| / 127, q = x (1 / d) to the nearest, ties to even. Returns d.
///
/// The scale is no number where a value is none: what such a weight reaches is to fail, and not to
/// be near. Shapes: values a multiple of 64, at most 4 x 64; quants the same.
float int8_quants(std::span<const float> values, std::int8_t* quants);

}  // namespace muster::engine

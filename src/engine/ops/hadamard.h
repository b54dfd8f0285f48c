#pragma once

#include <cstddef>

#include "engine/ops/panel_weight.h"

namespace muster::engine {

// The Hadamard transform of 64 inputs: y = H x / 8, H[k][j] = -1 where k & j has an odd number of
// bits, else 1. H H^T = 64 I, so the product of two transformed vectors is that of the vectors; but
// one value that is far larger than the others is spread over all 64, and what 8 bits with one
// scale lose is less. Source: Ashkboos et al. 2024, "QuaRot: Outlier-Free 4-Bit Inference in
// Rotated LLMs", section 3.1; the order is Sylvester's.
//
// Measured (SmolLM2-135M, activations and weights in 8 bits, 5,629 positions, everything else in
// float32): a mean KL to fp32 of 0.0071 in blocks of 32 as they are and 0.0129 in blocks of 64;
// transformed 0.0031 and 0.0033.

/// What is left out by `hadamard_64`, and belongs to the scale of what it makes.
inline constexpr float kHadamardFactor = 0.125F;

/// 8 times the transform, in place. The order of sums is fixed: the same bits by whatever
/// instructions.
// Always inline: a function of one name must not be compiled for several instruction sets.
[[gnu::always_inline]] inline void hadamard_64(float (&x)[kTransformedInputs]) {
#pragma GCC unroll 8
  for (std::size_t half = kTransformedInputs / 2; half > 0; half /= 2) {
    for (std::size_t begin = 0; begin < kTransformedInputs; begin += 2 * half) {
      for (std::size_t i = begin; i < begin + half; ++i) {
        const float a = x[i];
        const float b = x[i + half];
        x[i] = a + b;
        x[i + half] = a - b;
      }
    }
  }
}

}  // namespace muster::engine

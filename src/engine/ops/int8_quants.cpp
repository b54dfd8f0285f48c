// Floats to 8 bits, once for each weight when a model is loaded.

#include "engine/ops/int8_quants.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "base/check.h"
#include "engine/ops/hadamard.h"
#include "engine/ops/panel_weight.h"

namespace muster::engine {
namespace {

// Added to a small number it leaves no place behind the point: what is taken off again rounds to
// the nearest, ties to even.
constexpr float kWhole = 0x1.8p23F;

}  // namespace

float int8_quants(std::span<const float> values, std::int8_t* quants) {
  float transformed[kScaledBlocks][kTransformedInputs];
  const std::size_t blocks = values.size() / kTransformedInputs;
  MUSTER_CHECK(values.size() % kTransformedInputs == 0 && blocks <= kScaledBlocks);
  float most = 0;
  bool is_finite = true;
  for (std::size_t b = 0; b < blocks; ++b) {
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(b * kTransformedInputs),
                kTransformedInputs, transformed[b]);
    hadamard_64(transformed[b]);
    for (const float value : transformed[b]) {
      is_finite = is_finite && std::isfinite(value);
      most = std::max(most, std::abs(value));
    }
  }
  if (!is_finite) {
    std::fill_n(quants, values.size(), std::int8_t{0});
    return std::numeric_limits<float>::quiet_NaN();
  }
  const float scale = most / 127.0F;
  // Values so small that their scale has no reciprocal are nothing.
  const float reciprocal = scale == 0 ? 0.0F : 1.0F / scale;
  const float inverse = std::isinf(reciprocal) ? 0.0F : reciprocal;
  for (std::size_t b = 0; b < blocks; ++b) {
    for (const float value : transformed[b]) {
      const float rounded = (value * inverse + kWhole) - kWhole;
      *quants++ = static_cast<std::int8_t>(std::clamp(rounded, -127.0F, 127.0F));
    }
  }
  return scale * kHadamardFactor;
}

}  // namespace muster::engine

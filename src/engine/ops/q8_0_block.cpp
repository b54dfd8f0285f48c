// Floats to blocks of 8 bits, once for each weight when a model is loaded.

#include "engine/ops/q8_0_block.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "engine/ops/float16.h"

namespace muster::engine {

Q8Block q8_0_block(std::span<const float, kBlockInputs> values) {
  float most = 0;
  bool is_kept = true;
  for (const float value : values) {
    is_kept = is_kept && std::isfinite(value);
    most = std::max(most, std::abs(value));
  }
  const float scale = most / 127.0F;
  is_kept = is_kept && scale <= kFloat16Max;
  const Float16 half = to_float16(is_kept ? scale : std::numeric_limits<float>::quiet_NaN());
  Q8Block block{};
  std::memcpy(block.data(), &half, sizeof half);
  // Whatever the quants, a scale of zero makes nothing of them; and such a small one has no
  // reciprocal.
  if (!is_kept || to_float(half) == 0) return block;
  const float inverse = 1.0F / scale;
  for (std::size_t i = 0; i < kBlockInputs; ++i) {
    const auto quant = static_cast<std::int8_t>(std::round(values[i] * inverse));
    block[sizeof half + i] = static_cast<std::byte>(quant);
  }
  return block;
}

}  // namespace muster::engine

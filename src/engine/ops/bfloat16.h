#pragma once

#include <bit>
#include <cstdint>

namespace muster::engine {

/// The upper half of a float32. Source: "BFLOAT16 - Hardware Numerics Definition", Intel, 2018.
struct Bfloat16 {
  std::uint16_t bits = 0;
};

inline float to_float(Bfloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16U);
}

inline float to_float(float value) { return value; }

/// Rounds to nearest, ties to even; NaN stays NaN.
inline Bfloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return {static_cast<std::uint16_t>(bits >> 16U | 0x40U)};
  return {static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U)};
}

}  // namespace muster::engine

#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace muster::engine {

/// IEEE 754 binary16: what GGUF's block scales and our key and value cache are kept in.
struct Float16 {
  std::uint16_t bits = 0;
};

/// The largest finite value.
inline constexpr float kFloat16Max = 65504.0F;

/// Exact. Source: IEEE 754-2019, table 3.5: 1 sign, 5 exponent (bias 15), 10 fraction bits.
inline float to_float(Float16 value) {
  const std::uint32_t sign = (value.bits & 0x8000U) << 16U;
  const std::uint32_t magnitude = value.bits & 0x7fffU;
  if (magnitude >= 0x7c00U) {  // infinity or NaN
    return std::bit_cast<float>(sign | 0x7f800000U | (magnitude & 0x3ffU) << 13U);
  }
  // Subnormal: by a product, as a lane takes subnormal float32 for zero.
  const float size = magnitude < 0x400U ? static_cast<float>(magnitude) * 0x1p-24F
                                        : std::bit_cast<float>((magnitude << 13U) + 0x38000000U);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(size) | sign);
}

/// Rounds to nearest, ties to even; beyond the largest finite value it stays there, NaN stays NaN.
inline Float16 to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16U & 0x8000U);
  if (value != value) return {static_cast<std::uint16_t>(sign | 0x7e00U)};
  const float magnitude = std::min(std::abs(value), kFloat16Max);
  if (magnitude < 0x1p-14F) {  // subnormal: a multiple of 2^-24, which the sum rounds to
    const auto sum = std::bit_cast<std::uint32_t>(magnitude + 0.5F);
    return {static_cast<std::uint16_t>(sign | (sum - std::bit_cast<std::uint32_t>(0.5F)))};
  }
  const auto whole = std::bit_cast<std::uint32_t>(magnitude);
  const std::uint32_t rounded = whole + 0xfffU + (whole >> 13U & 1U);
  return {static_cast<std::uint16_t>(sign | (std::min(rounded, 0x477fe000U) - 0x38000000U) >> 13U)};
}

}  // namespace muster::engine

#pragma once

#include <concepts>
#include <cstdint>
#include <limits>

namespace muster {

/// Sums and products of bytes that stay at the largest number instead of wrapping: dimensions come
/// from files, and a wrapped size would say "fits".
inline std::uint64_t add_bytes(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::uint64_t>::max() : sum;
}

inline std::uint64_t multiply_bytes(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::uint64_t>::max()
                                                : product;
}

template <std::convertible_to<std::uint64_t>... More>
std::uint64_t add_bytes(std::uint64_t a, std::uint64_t b, More... more) {
  return add_bytes(add_bytes(a, b), static_cast<std::uint64_t>(more)...);
}

template <std::convertible_to<std::uint64_t>... More>
std::uint64_t multiply_bytes(std::uint64_t a, std::uint64_t b, More... more) {
  return multiply_bytes(multiply_bytes(a, b), static_cast<std::uint64_t>(more)...);
}

inline std::uint64_t divide_up(std::uint64_t value, std::uint64_t divisor) {
  return value / divisor + (value % divisor != 0 ? 1 : 0);
}

/// `bytes` of `whole` equal pieces, of which a device has `part`; rounded up, no overflow between.
inline std::uint64_t share_of(std::uint64_t bytes, std::uint64_t part, std::uint64_t whole) {
  if (part >= whole) return bytes;
  const auto rest = divide_up(multiply_bytes(bytes % whole, part), whole);
  return add_bytes(multiply_bytes(bytes / whole, part), rest);
}

}  // namespace muster

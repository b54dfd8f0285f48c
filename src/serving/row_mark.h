#pragma once

#include <bit>
#include <cstdint>

namespace muster {

/// A row as it is cached: its values, and then how many tokens the text had and whether it was cut,
/// as the bits of one more float.
inline constexpr std::uint32_t kTruncatedBit = 1U << 31;

inline float length_mark(std::uint32_t token_count, bool is_truncated) {
  return std::bit_cast<float>(token_count | (is_truncated ? kTruncatedBit : 0));
}

}  // namespace muster

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace muster {

/// A quick hash of a short text for tables of our own; not for keeping and not against an
/// adversary. Source: the 128-bit multiply-and-fold step of wyhash (Wang Yi, public domain).
inline std::uint64_t hash_short_text(std::string_view text) {
  constexpr std::uint64_t kFirst = 0xA0761D6478BD642FULL;
  constexpr std::uint64_t kSecond = 0xE7037ED1A0B428DBULL;
  const auto fold = [](std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  };
  std::uint64_t hash = kFirst ^ text.size();
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left > 8; left -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    hash = fold(hash ^ word, kSecond);
  }
  std::uint64_t word = 0;
  if (left >= 4) {  // two overlapping halves; the size is already in the hash
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    std::memcpy(&low, at, sizeof low);
    std::memcpy(&high, at + left - 4, sizeof high);
    word = (static_cast<std::uint64_t>(high) << 32) | low;
  } else if (left > 0) {
    const auto byte = [at](std::size_t i) {
      return static_cast<std::uint64_t>(static_cast<unsigned char>(at[i]));
    };
    word = byte(0) | (byte(left / 2) << 8) | (byte(left - 1) << 16);
  }
  return fold(hash ^ word, kSecond ^ kFirst);
}

}  // namespace muster

#pragma once

#include <cstddef>
#include <cstdint>

namespace muster {

// What a file may claim. Far above any published model, and small enough that the elements of one
// tensor and the bytes of a few thousand fit 64 bits.
inline constexpr std::uint32_t kRowsMax = 1U << 26;       // vocabulary, positions
inline constexpr std::uint32_t kWidthMax = 1U << 20;      // hidden, intermediate
inline constexpr std::uint32_t kHeadWidthMax = 1U << 14;  // one head
inline constexpr std::uint32_t kLayersMax = 1U << 11;     // layers, token types, buckets
inline constexpr std::uint32_t kHeadsMax = 1U << 12;
inline constexpr std::uint32_t kExpertsMax = 1U << 14;

/// More than any machine has, and so little that the sums of a plan over many devices fit 64 bits.
inline constexpr std::uint64_t kModelBytesMax = 1ULL << 50;

/// A bound on what one description takes; DeepSeek-V3 has 91,991.
inline constexpr std::size_t kTensorsMax = 1U << 20;

}  // namespace muster

#pragma once

#include <array>
#include <cstdint>

namespace muster::engine {

/// Philox4x32-10: four random words that are a function of a counter and a key, without a state.
/// Source: Salmon, Moraes, Dror, Shaw 2011, "Parallel Random Numbers: As Easy as 1, 2, 3", section
/// 3.3 and the test vectors of Random123 (kat_vectors).
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

/// A number of [0, 1) with 53 random bits: that of position `position` of a stream named by `seed`.
/// The same for the same two, whoever else draws.
double uniform_at(std::uint64_t seed, std::uint64_t position);

}  // namespace muster::engine

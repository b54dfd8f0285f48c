#pragma once

#include <array>
#include <cstdint>

namespace muster::engine {

/// Philox4x32-10: four random words that are a function of a counter and a key, without a state.
/// Source: Salmon, Moraes, Dror, Shaw 2011, "Parallel Random Numbers: As Easy as 1, 2, 3", section
/// 3.3 and the test vectors of Random123 (kat_vectors).
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

/// Whose number is drawn: that of a position in one of the streams of a seed.
struct DrawPlace {
  std::uint64_t seed = 0;
  std::uint32_t choice = 0;  // the stream
  std::uint64_t position = 0;
};

/// A number of [0, 1) with 53 random bits. The same for the same place, whoever else draws; the
/// seed is the key, position and choice are words of the counter, so no two places share a number
/// but by chance.
double uniform_at(const DrawPlace& place);

}  // namespace muster::engine

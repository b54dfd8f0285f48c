#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace muster {

/// The most bytes of one value: "-1.17549435e-38".
inline constexpr std::size_t kShortestMost = 15;

/// Writes for each value the shortest decimal that reads back as it, the nearest one of that
/// length, byte for byte what std::to_chars writes, and a comma; returns the end. All values must
/// be finite, and `out` have room for kShortestMost + 1 bytes for each.
///
/// Values of 0.0001 <= |value| < 1, which those of a vector of length 1 mostly are, go a shorter
/// way than Ryu's, sixteen at a time and without branches: for those the value, and the half way to
/// its neighbours, times 10^9 to 10^12 are exact in double, since 25 bits and the 28 of 5^12 fit
/// into 53. What is left is to find the roundest whole number between two whole numbers. One in
/// 250, of five digits or fewer, goes Ryu's way too.
/// Source: Adams, "Ryu: fast float-to-string conversion" (PLDI 2018), section 2, for what the
/// shortest is; that both ways agree for all floats from 0.00009 to 1.1 is a test.
/// Cost: 7 ns a value with AVX2, 12 without, where Ryu's way takes 32 (AMD Zen 4, values of a
/// normal distribution of 0.05).
char* put_shortest(std::span<const float> values, char* out);

using PutShortest = char* (*)(std::span<const float>, char*);

/// put_shortest for each instruction set that this CPU has, the quickest last.
std::vector<PutShortest> put_shortest_available();

}  // namespace muster

#pragma once

namespace muster {

/// The most bytes that put_shortest writes: "-1.17549435e-38".
inline constexpr int kShortestMost = 15;

/// Writes the shortest decimal that reads back as `value`, the nearest one of that length, byte for
/// byte what std::to_chars writes; returns its end. `value` must be finite, and `out` have room for
/// kShortestMost bytes.
///
/// Values of 0.0001 <= |value| < 1, which those of a vector of length 1 mostly are, go a shorter
/// way than Ryu's, without a table of powers and nearly without branches: for those the value, and
/// the half way to its neighbours, times 10^9 to 10^12 are exact in double, since 25 bits and the
/// 28 of 5^12 fit into 53. What is left is to find the roundest whole number between two whole
/// numbers. Source: Adams, "Ryu: fast float-to-string conversion" (PLDI 2018), section 2, for what
/// the shortest is; that both ways agree for all floats from 0.00009 to 1.1 is a test.
char* put_shortest(float value, char* out);

}  // namespace muster

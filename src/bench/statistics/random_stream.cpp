#include "bench/statistics/random_stream.h"

#include <cmath>
#include <numbers>

namespace muster {

// Half a unit is added so that 0 and 1 never come: both would be infinite in a logarithm.
double RandomStream::uniform() {
  constexpr int kDropped = 11;  // a double holds 53 bits
  constexpr double kUnit = 0x1p-53;
  return (static_cast<double>(bits_() >> kDropped) + 0.5) * kUnit;
}

double RandomStream::exponential() { return -std::log(uniform()); }

// One of Box and Muller's two values; the other is dropped, so that each draw uses the same number
// of bits.
double RandomStream::normal() {
  const double radius = std::sqrt(2 * exponential());
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

// The bias of a product is below 2^-53 x count: of no matter for counts of prompts.
std::uint64_t RandomStream::below(std::uint64_t count) {
  return static_cast<std::uint64_t>(uniform() * static_cast<double>(count));
}

}  // namespace muster

#pragma once

#include <cstdint>
#include <random>

namespace muster {

/// Random numbers that a seed fixes on every machine: the bits are std::mt19937_64's, which the C++
/// standard states; the transforms are ours, because the standard's distributions differ between
/// libraries.
///
/// Threads: not thread-safe.
class RandomStream {
 public:
  explicit RandomStream(std::uint64_t seed) : bits_(seed) {}

  /// Uniform in (0, 1); never 0 or 1.
  double uniform();
  /// Exponential, mean 1.
  double exponential();
  /// Normal, mean 0, variance 1. Source: Box and Muller 1958.
  double normal();
  /// Uniform in [0, count); count is at least 1.
  std::uint64_t below(std::uint64_t count);

 private:
  std::mt19937_64 bits_;
};

}  // namespace muster

#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace muster {

/// Random numbers that are the same on every machine and library, from one seed.
/// Source of the generator: Steele, Lea & Flood 2014, "Fast splittable pseudorandom number
/// generators" (SplitMix64).
class SimulatedChance {
 public:
  explicit SimulatedChance(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    auto x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  /// In (0, 1).
  double uniform() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; }

  /// 0 to count - 1.
  std::uint64_t below(std::uint64_t count) { return next() % count; }

  bool happens(double probability) { return uniform() < probability; }

  /// Of the given mean: the time between two arrivals of a Poisson process.
  double exponential(double mean) { return -mean * std::log(uniform()); }

  /// Mean 0, deviation 1. Source: Box & Muller 1958, "A note on the generation of random normal
  /// deviates".
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

  /// Of the given mean; sigma is that of its logarithm.
  double log_normal(double mean, double sigma) {
    return mean * std::exp(sigma * normal() - sigma * sigma / 2);
  }

 private:
  std::uint64_t state_;
};

}  // namespace muster

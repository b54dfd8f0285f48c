#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/simulation.h"

namespace muster {

/// Texts of a Poisson process whose cost is log-normal, a mean of one second on a device of speed
/// 1, each text a batch of its own. The scheduler sees an estimate of the cost, off by a log-normal
/// factor of mean 1.
struct HeavyTailed {
  Strategy strategy = Strategy::Auto;
  std::vector<double> speeds;  // by device
  double load = 0.8;           // of the sum of speeds
  double sigma = 1.5;          // of the logarithm of the cost
  double estimate_sigma = 0.3;
  std::size_t text_count = 100'000;
  std::uint64_t slot_count = 2;  // of a device of one lane: one batch runs, the others wait there
  std::uint64_t seed = 1;
};
SimulationInput heavy_tailed(const HeavyTailed& options);

/// Everything is there from the start: 20,000 texts of 16 to 512 tokens in batches up to 4,096.
SimulationInput saturated(Strategy strategy, const std::vector<double>& speeds, std::uint64_t seed);

/// Texts of 128 tokens that come at once to idle, equal devices of two slots.
SimulationInput burst(Strategy strategy, std::size_t text_count, std::size_t device_count);

/// A small random world, all of it by the seed: devices, models, texts, strategy, admission, texts
/// that kill, people who go away, workers that are killed, crash, hang and slow down.
SimulationInput random_faults(std::uint64_t seed);

/// Every strategy; `Expression` stands for outstanding_seconds / weight.
std::vector<Strategy> all_strategies();

}  // namespace muster

#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace muster {

/// Which part of a run counts.
struct SteadyPart {
  std::size_t begin = 0;            // samples before it are warm-up
  std::optional<bool> is_steady{};  // of what is kept; nullopt: too few samples to tell
  double drift = 0;                 // of what is kept, from its first to its last: 0.1 is 10 %
};

/// Cuts the beginning of a series that has not settled yet.
///
/// The samples go into up to 240 batches of equal number, each with its median; outliers among
/// these are brought to five robust standard deviations, so that a stall late in a run is not taken
/// for the end of its warm-up. The cut is where the standard error of the mean of what is left is
/// least (MSER), a quarter further: where a ramp ends in noise, MSER stops before its end. With a
/// quarter 97 % of the ramps of `muster bench selftest warm-up --full` are cut whole, with 1.15 75
/// %. What is kept is steady if a straight line through it does not rise or fall significantly (99
/// %) by more than 5 %, and the cut lies in the first half.
///
/// values: latencies in the order of time. Cost: linear but for the medians. Threads: pure.
/// Source: White 1997, "An effective truncation heuristic for bias reduction in simulation output",
/// Simulation 69; Franklin and White 2008, "Stationarity tests and MSER-5".
SteadyPart find_steady_part(std::span<const double> values);

}  // namespace muster

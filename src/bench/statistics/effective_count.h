#pragma once

#include <cstdint>
#include <span>

namespace muster {

/// How much a series of samples that depend on their neighbours says about its mean.
///
/// Requests that wait in one queue wait alike: of 100,000 of them at 95 % load a few hundred are
/// worth as much as independent ones, and an interval that takes them for 100,000 is too narrow.
struct SeriesMean {
  double mean = 0;
  double variance = 0;            // of one sample
  double variance_of_mean = 0;    // neighbours' likeness included
  std::uint64_t block_count = 0;  // blocks that look independent; the samples where those do
  bool is_independent = false;    // nothing speaks against the samples being so
};

/// Blocks of 1, 2, 4, … samples: the smallest from which on no likeness of neighbours is left at
/// 99 %, or twice as large ones if single samples are alike, give the variance of the mean. Fewer
/// than 32 samples are taken to be independent. At least 16 blocks are kept; where even these are
/// alike, the variance comes out too small.
///
/// values: in the order of time, at least one.
/// Source: Jonsson 2018, "Standard error estimation by an automated blocking method", Physical
/// Review E 98, 043304; the blocks are Flyvbjerg and Petersen's (1989).
/// Cost: linear. Threads: pure.
SeriesMean mean_of_series(std::span<const double> values);

}  // namespace muster

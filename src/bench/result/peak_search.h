#pragma once

#include <cstdint>
#include <optional>

namespace muster {

/// How a rate came out. Unknown: nothing was missed, and something could not be known.
enum class RateOutcome : std::uint8_t { Met, Missed, Unknown };

/// Seconds in which requests at this rate are so many answers: with 30 % more, as arrivals are
/// random and a warm-up may be cut. Threads: pure.
double seconds_for_samples(std::uint64_t samples, double rate);

/// Looks for the highest rate that keeps an objective: doubles until one misses it, then halves the
/// gap until it is within `resolution`. A rate of which nothing is known may be one that keeps it,
/// and more requests tell more: the search goes up from it, and not below it.
///
/// Noise can make a rate miss that would usually keep: what is found is the highest rate that was
/// seen to keep it, so it is never too high by more than one lucky trial.
///
/// Source: MLPerf Inference LoadGen, FindPeakPerformance. Threads: not thread-safe.
class PeakSearch {
 public:
  struct Options {
    double first_rate = 1;     // requests a second
    double rate_most = 1e6;    // not tried above
    double rate_least = 0.01;  // not tried below
    double resolution = 0.05;  // of the rate
  };

  explicit PeakSearch(const Options& options) : options_(options), next_(options.first_rate) {}

  /// The rate to try; nullopt when the search is over.
  std::optional<double> next_rate() const { return next_; }
  /// How the rate that was tried came out.
  void report(RateOutcome outcome);

  /// The highest rate that kept the objective; nullopt: none did.
  std::optional<double> peak() const { return met_; }
  /// The lowest rate that missed it.
  std::optional<double> missed() const { return missed_; }
  /// The highest rate of which it is not known.
  std::optional<double> unknown() const { return unknown_; }

 private:
  const Options options_;
  std::optional<double> next_;
  std::optional<double> met_;
  std::optional<double> missed_;
  std::optional<double> unknown_;
};

}  // namespace muster

#pragma once

#include <optional>

namespace muster {

/// Looks for the highest rate that keeps an objective: doubles until one misses it, then halves the
/// gap until it is within `resolution`.
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
  void report(bool is_met);

  /// The highest rate that kept the objective; nullopt: none did.
  std::optional<double> peak() const { return met_; }
  /// The lowest rate that missed it.
  std::optional<double> missed() const { return missed_; }

 private:
  const Options options_;
  std::optional<double> next_;
  std::optional<double> met_;
  std::optional<double> missed_;
};

}  // namespace muster

#pragma once

#include <cstddef>
#include <optional>

#include "base/clock.h"

namespace muster {

/// How long it takes until places come free, of a number of places that are all taken: by how
/// quickly they came free before while all were.
///
///   gap  = time in which all were taken / places that came free in it
///   wait = gap x places that must come free
///
/// The time since the last one came free counts, too, or long replies in all places would not show
/// before the first of them ends. Before any has come free nobody knows how many will come with the
/// first one: it takes as long as it has taken, however many are asked for. Older places count
/// less.
///
/// Pure. Threads: owned by one loop.
/// Source: the maximum-likelihood estimate of the rate of a Poisson process that is watched for a
/// time: events by time (Cox and Lewis 1966, "The statistical analysis of series of events").
class PlaceForecast {
 public:
  /// All are taken from now on, or it is not so (some are free, or none is there to come free).
  void set_full(bool is_full, TimePoint now);
  bool is_full() const { return since_.has_value(); }

  /// So many came free while all were taken. All are taken still until `set_full` says otherwise.
  void on_freed(std::size_t count, TimePoint now);

  /// Until so many have come free; nullopt: nothing is known of it.
  std::optional<Duration> wait(std::size_t count, TimePoint now) const;

 private:
  std::optional<TimePoint> since_;  // that the last one came free, or that all are taken
  double seconds_ = 0;              // in which all were taken
  double count_ = 0;                // of places that came free in them
};

}  // namespace muster

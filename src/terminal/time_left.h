#pragma once

#include <optional>

#include "base/clock.h"

namespace muster {

/// The time that a job will still take, from how its share of the whole grows.
///
/// The speed is an exponentially weighted mean of the share's growth, with a time constant of 15 s,
/// corrected for its start (all weights together are 1 from the first moment on). What is told
/// counts down by itself and goes a part of the way to the newest estimate with each look, with a
/// time constant of 4 s: a batch that is finished, or a buffer that is read, moves it little.
///
///   speed = sum of w_i * growth_i / sum of w_i * time_i
///
/// Source of the correction: Kingma and Ba 2015, "Adam", section 3.
/// Pure. Threads: not thread-safe.
class TimeLeft {
 public:
  /// share: 0 to 1, never less than before. Seconds left; nullopt in the first two seconds of
  /// growth, and while it would be over 100 hours.
  std::optional<double> add(TimePoint now, double share);

 private:
  std::optional<TimePoint> last_;
  double last_share_ = 0;
  bool has_grown_ = false;
  double grown_ = 0;    // weighted, and
  double elapsed_ = 0;  // the time that it took, weighted alike
  double seen_seconds_ = 0;
  std::optional<double> shown_;
};

}  // namespace muster

#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "base/clock.h"

namespace muster {

/// When a dead worker of one device is started again: at once, unless it keeps dying.
///
/// Three deaths within ten seconds without a batch served in between, or three deaths in a row
/// before the worker was ever ready, start a back-off of 0.1 s that doubles to 30 s at most and
/// ends with the next batch served. For a job that gives up, three deaths before the worker was
/// ready, each its own fault, mean that it cannot start: the device is given up.
///
/// Pure. Threads: owned by the coordinator's loop.
class RestartPolicy {
 public:
  struct Death {
    bool was_ready = false;     // it had loaded its model
    bool is_own_fault = false;  // not killed from outside
  };

  explicit RestartPolicy(bool gives_up = true) : gives_up_(gives_up) {}

  /// The delay before the restart; nullopt: give the device up.
  std::optional<Duration> on_death(TimePoint now, const Death& death);

  void on_batch_served();

  /// Deaths of its own fault in a row before it was ready.
  std::uint32_t failed_start_count() const { return failed_start_count_; }

 private:
  bool gives_up_;
  std::deque<TimePoint> deaths_;  // of the last ten seconds, since the last batch served
  std::uint32_t failed_start_count_ = 0;
  Duration backoff_{0};
};

}  // namespace muster

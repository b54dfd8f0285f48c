#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "base/clock.h"

namespace muster {

/// When a dead worker of one device is started again: at once, unless it keeps dying.
///
/// Three deaths within ten seconds without a batch served in between, or three deaths in a row
/// before the worker was ever ready, start a back-off of 0.1 s that doubles to 30 s at most. It
/// ends with the next batch served; while an end at fault counts (below), when that does not any
/// more. For a job that gives up, three deaths before the worker was ready, each its own fault,
/// mean that it cannot start: the device is given up.
///
/// A worker that was ended because it failed, lied, hung or broke the protocol may do well at its
/// start and at some batches: three such ends count as those of one that cannot start, until a
/// hundred batches were served in a row or a text was found to be what ended it.
///
/// Pure. Threads: owned by the coordinator's loop.
class RestartPolicy {
 public:
  struct Death {
    bool was_ready = false;     // it had loaded its model
    bool is_own_fault = false;  // not killed from outside
    bool is_at_fault = false;   // ended for what it did with its batches or canary
  };

  explicit RestartPolicy(bool gives_up = true) : gives_up_(gives_up) {}

  /// The delay before the restart; nullopt: give the device up.
  std::optional<Duration> on_death(TimePoint now, const Death& death);

  void on_batch_served();

  /// A text was found to be what ended workers: their devices are not to blame.
  void on_text_found() { fault_count_ = 0; }

  /// The delay before the last restart; zero again once the worker has served well.
  Duration backoff() const { return backoff_; }

  /// Deaths of its own fault in a row before it was ready.
  std::uint32_t failed_start_count() const { return failed_start_count_; }

 private:
  bool gives_up_;
  std::deque<TimePoint> deaths_;  // of the last ten seconds, since the last batch served
  std::uint32_t failed_start_count_ = 0;
  std::uint32_t fault_count_ = 0;   // lives that ended at fault
  std::uint32_t served_count_ = 0;  // batches since the last of them
  Duration backoff_{0};
};

}  // namespace muster

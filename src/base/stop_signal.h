#pragma once

#include <semaphore.h>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace muster {

/// Tells threads that wait, for a time or for a descriptor, that it is over.
///
/// A semaphore and no condition variable: a thread that wakes ten times a second pays one call of
/// the system a turn, where glibc takes a second one to unlock the mutex after every wait.
///
/// Threads: thread-safe.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  void raise();

  /// Waits as long, or until then; false as soon as it is raised.
  ///
  /// time: of CLOCK_MONOTONIC, as SteadyClock's.
  bool wait(Duration duration);
  bool wait_until(TimePoint time);

  /// Readable once it is raised.
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
  sem_t semaphore_{};  // above zero once it is raised
};

}  // namespace muster

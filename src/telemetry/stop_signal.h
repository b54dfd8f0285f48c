#pragma once

#include <semaphore.h>

#include "base/clock.h"

namespace muster {

/// Tells a thread that sleeps until its next turn that there is none.
///
/// A POSIX semaphore: a turn costs one call of the system, where a condition variable takes two,
/// the second to unlock a mutex that glibc marks as contended after every wait.
///
/// Threads: `stop` by any thread; one thread waits.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  void stop();

  /// Sleeps until then, or until `stop` is called: true, once for each call of it.
  ///
  /// time: of CLOCK_MONOTONIC, as SteadyClock's.
  bool stopped_by(TimePoint time);

 private:
  sem_t semaphore_{};
};

}  // namespace muster

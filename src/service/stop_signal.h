#pragma once

#include <condition_variable>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/unique_fd.h"

namespace muster {

/// Tells threads that wait, for a time or for a descriptor, that it is over.
///
/// Threads: thread-safe.
class StopSignal {
 public:
  StopSignal();

  void raise();

  /// Waits as long; false as soon as it is raised.
  bool wait(Duration duration);

  /// Readable once it is raised.
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool is_raised_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#pragma once

#include <condition_variable>
#include <mutex>

#include "base/clock.h"

namespace muster {

/// Held while the driver is called for a device. It is what std::timed_mutex is, which
/// ThreadSanitizer cannot follow: that of g++ 12 does not know pthread_mutex_clocklock.
///
/// Threads: every method may be called by any thread; for std::unique_lock.
class DeviceLock {
 public:
  bool try_lock() { return try_lock_until({}); }

  bool try_lock_until(TimePoint deadline) {
    std::unique_lock lock(mutex_);
    if (!freed_.wait_until(lock, deadline, [this] { return !is_held_; })) return false;
    is_held_ = true;
    return true;
  }

  void unlock() {
    {
      const std::lock_guard lock(mutex_);
      is_held_ = false;
    }
    freed_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  bool is_held_ = false;  // guarded by mutex_
};

}  // namespace muster

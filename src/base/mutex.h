#pragma once

#include <mutex>

#if defined(__clang__)
#define MUSTER_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define MUSTER_THREAD_ATTRIBUTE(x)
#endif
#define MUSTER_GUARDED_BY(mutex) MUSTER_THREAD_ATTRIBUTE(guarded_by(mutex))
#define MUSTER_REQUIRES(mutex) MUSTER_THREAD_ATTRIBUTE(requires_capability(mutex))

namespace muster {

/// std::mutex that clang's -Wthread-safety can see (libstdc++'s carries no annotations).
class MUSTER_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void lock() MUSTER_THREAD_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
  void unlock() MUSTER_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

/// Holds a Mutex for one scope.
class MUSTER_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) MUSTER_THREAD_ATTRIBUTE(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() MUSTER_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace muster

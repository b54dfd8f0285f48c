// A semaphore for threads that sleep and an eventfd for those that poll, raised together. Waiting
// costs one system call.

#include "base/stop_signal.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <chrono>

#include "base/check.h"

namespace muster {

StopSignal::StopSignal() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  MUSTER_CHECK(fd_.is_open());
  MUSTER_CHECK(::sem_init(&semaphore_, 0, 0) == 0);
}

StopSignal::~StopSignal() { ::sem_destroy(&semaphore_); }

void StopSignal::raise() {
  // Its counter is far from full, so this cannot fail.
  (void)::eventfd_write(fd_.get(), 1);
  ::sem_post(&semaphore_);
}

bool StopSignal::wait(Duration duration) {
  return wait_until(std::chrono::steady_clock::now() + duration);
}

bool StopSignal::wait_until(TimePoint time) {
  const auto since = time.time_since_epoch();
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(since);
  const timespec until{whole.count(), (since - whole).count()};
  for (;;) {
    if (::sem_clockwait(&semaphore_, CLOCK_MONOTONIC, &until) == 0) break;
    if (errno != EINTR) return true;
  }
  ::sem_post(&semaphore_);  // it stays raised, for the others and for the next wait
  return false;
}

}  // namespace muster

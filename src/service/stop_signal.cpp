#include "service/stop_signal.h"

#include <sys/eventfd.h>

#include "base/check.h"

namespace muster {

StopSignal::StopSignal() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  MUSTER_CHECK(fd_.is_open());
}

void StopSignal::raise() {
  {
    const MutexLock lock(mutex_);
    is_raised_ = true;
  }
  // Its counter is far from full, so this cannot fail.
  (void)::eventfd_write(fd_.get(), 1);
  changed_.notify_all();
}

bool StopSignal::wait(Duration duration) {
  const auto until = std::chrono::steady_clock::now() + duration;
  const MutexLock lock(mutex_);
  while (!is_raised_) {
    if (changed_.wait_until(mutex_, until) == std::cv_status::timeout) break;
  }
  return !is_raised_;
}

}  // namespace muster

#include "telemetry/stop_signal.h"

#include <cerrno>
#include <chrono>

#include "base/check.h"

namespace muster {

StopSignal::StopSignal() { MUSTER_CHECK(::sem_init(&semaphore_, 0, 0) == 0); }

StopSignal::~StopSignal() { ::sem_destroy(&semaphore_); }

void StopSignal::stop() { ::sem_post(&semaphore_); }

bool StopSignal::stopped_by(TimePoint time) {
  const auto since = time.time_since_epoch();
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(since);
  const timespec until{whole.count(), (since - whole).count()};
  for (;;) {
    if (::sem_clockwait(&semaphore_, CLOCK_MONOTONIC, &until) == 0) return true;
    if (errno != EINTR) return false;
  }
}

}  // namespace muster

// A pause that doubles: memory that comes back in a second is used in the next one, and a device
// that stays full for hours is asked once a minute.

#include "coordinator/memory_wait.h"

#include <algorithm>

namespace muster {
namespace {

constexpr Duration kPauseMin = std::chrono::seconds(1);
constexpr Duration kPauseMax = std::chrono::seconds(60);

}  // namespace

void MemoryWait::on_full(TimePoint now) {
  ++full_count_;
  pause_ = std::clamp<Duration>(pause_ * 2, kPauseMin, kPauseMax);
  at_ = now + pause_;
}

}  // namespace muster

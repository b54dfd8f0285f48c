// Two levels, because writing to an eventfd and reading it again costs two system calls: a text
// that is submitted makes a step due, and its owner, who asks for the deadline next, needs no more.

#include "coordinator/step_signal.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace muster {

StepSignal::StepSignal() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void StepSignal::wake() {
  if (is_woken_ || is_in_step_) return;
  is_due_ = is_woken_ = true;
  constexpr std::uint64_t kOne = 1;
  (void)!::write(fd_.get(), &kOne, sizeof kOne);
}

bool StepSignal::begin_step() {
  if (std::exchange(is_woken_, false)) {
    std::uint64_t count = 0;
    (void)!::read(fd_.get(), &count, sizeof count);
  }
  is_in_step_ = true;
  return std::exchange(is_due_, false);
}

}  // namespace muster

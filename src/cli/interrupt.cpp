// The first Ctrl-C is noted and the program ends in order; a second one that comes later ends it at
// once, for a person who will not wait. The handler does nothing that is not safe in a signal
// handler. Source: signal-safety(7).

#include "cli/interrupt.h"

#include <time.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

namespace muster {
namespace {

// `timeout` and some shells send a signal twice at once, to the process and to its group. Only one
// that comes later is somebody who will not wait.
constexpr std::int64_t kSecondSignalAfterMs = 1000;

// A signal handler can reach nothing but globals; these are the only ones of the program.
// Atomic, because the handler runs on whatever thread the kernel chooses.
std::atomic<int> caught_signal = 0;
std::atomic<std::int64_t> caught_at_ms = 0;
static_assert(std::atomic<int>::is_always_lock_free);  // or they are not for handlers
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

void remember(int signal_number) {
  const int errno_before = errno;  // of the code that the signal came between
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t now_ms = std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
  if (caught_signal == 0) {
    caught_at_ms = now_ms;
    caught_signal = signal_number;
  } else if (now_ms - caught_at_ms > kSecondSignalAfterMs) {
    // The default action ends the process, and a shell sees that a signal did it.
    std::signal(signal_number, SIG_DFL);
    std::raise(signal_number);
  }
  errno = errno_before;
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = remember;
  // Waiting in poll() ends all the same; other calls need not know about signals.
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

int interrupt_signal() { return caught_signal; }

void forget_interrupt() { caught_signal = 0; }

}  // namespace muster

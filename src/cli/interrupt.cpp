#include "cli/interrupt.h"

#include <csignal>

namespace muster {
namespace {

// A signal handler can reach nothing but a global; this is the only one of the program.
volatile std::sig_atomic_t caught_signal = 0;

void remember(int signal_number) { caught_signal = signal_number; }

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = remember;
  // Waiting in poll() ends all the same; other calls need not know about signals.
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

int interrupt_signal() { return caught_signal; }

}  // namespace muster

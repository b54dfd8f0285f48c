// The handler runs in the midst of anything, so it compares addresses, writes a line and lets the
// fault happen again under the handler that was there before.

#include "standin/host_access.h"

#include <signal.h>
#include <unistd.h>

#include <string_view>

namespace muster::standin {
namespace {

constexpr std::string_view kDeviceMemory =
    "standin: the host touches memory of a device: it must be copied to the host\n";
constexpr std::string_view kPinnedMemory =
    "standin: the host touches pinned memory that a device may still use: it must wait for the "
    "stream\n";

const Machine* watched = nullptr;
struct sigaction handler_before;

void on_fault(int number, siginfo_t* info, void* /*context*/) {
  std::string_view words;
  if (watched->device_of(info->si_addr)) {
    words = kDeviceMemory;
  } else if (watched->owns_pinned_address(info->si_addr)) {
    words = kPinnedMemory;
  }
  (void)!::write(STDERR_FILENO, words.data(), words.size());
  ::sigaction(number, &handler_before, nullptr);
}

}  // namespace

void explain_host_access(const Machine& machine) {
  watched = &machine;
  struct sigaction action {};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGSEGV, &action, &handler_before);
}

}  // namespace muster::standin

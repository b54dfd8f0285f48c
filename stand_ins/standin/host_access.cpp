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
constexpr std::string_view kKernel = "standin: a kernel touches memory that is not given out\n";

const Machine* watched = nullptr;
struct sigaction handler_before;

std::string_view words_for(const void* address) {
  if (watched->device_of(address)) return kDeviceMemory;
  if (watched->owns_pinned_address(address)) return kPinnedMemory;
  if (watched->owns_kernel_address(address)) return kKernel;
  return {};
}

void on_fault(int number, siginfo_t* info, void* /*context*/) {
  ::sigaction(number, &handler_before, nullptr);
  const bool is_sent =
      info->si_code <= 0;  // by another process: it does not happen again by itself
  if (is_sent) {
    ::raise(number);
    return;
  }
  const auto words = words_for(info->si_addr);
  (void)!::write(STDERR_FILENO, words.data(), words.size());
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

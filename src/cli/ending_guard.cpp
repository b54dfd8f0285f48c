// An end that was asked for comes, even when the main loop hangs: a thread of its own takes the
// signals and ends the process at the deadline. Signals are blocked before it starts, so that every
// thread that comes later inherits the mask and this one alone takes them. A second signal shortens
// the deadline and never extends it.

#include "cli/ending_guard.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <memory>
#include <utility>

namespace muster {
namespace {

TimePoint now() { return std::chrono::steady_clock::now(); }

}  // namespace

Result<std::unique_ptr<EndingGuard>> EndingGuard::start(Duration limit,
                                                        std::function<void(int)> on_signal) {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&wanted, number);
  ::pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
  UniqueFd signals(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.is_open()) return system_error("signals", "wait for", errno);
  UniqueFd stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.is_open()) return system_error("signals", "wait for", errno);
  return std::unique_ptr<EndingGuard>(
      new EndingGuard(std::move(signals), std::move(stop), limit, std::move(on_signal)));
}

EndingGuard::EndingGuard(UniqueFd signals, UniqueFd stop, Duration limit,
                         std::function<void(int)> on_signal)
    : signals_(std::move(signals)),
      stop_(std::move(stop)),
      limit_(limit),
      on_signal_(std::move(on_signal)),
      thread_([this] { run(); }) {}

EndingGuard::~EndingGuard() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto size = ::write(stop_.get(), &one, sizeof one);
  thread_.join();
}

void EndingGuard::run() {
  for (;;) {
    int wait_ms = -1;
    if (deadline_) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - now()).count();
      // poll() takes an int of milliseconds; a longer wait is taken up again by the loop.
      constexpr long kLongest = 60'000;
      wait_ms = static_cast<int>(std::clamp<long>(left, 0, kLongest));
    }
    std::array<pollfd, 2> waited{pollfd{signals_.get(), POLLIN, 0}, pollfd{stop_.get(), POLLIN, 0}};
    ::poll(waited.data(), waited.size(), wait_ms);
    if ((waited[1].revents & POLLIN) != 0) return;
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      take(static_cast<int>(info.ssi_signo));
    }
    // What was answered was answered; nobody waits for what is left.
    // _exit, not exit: destructors would wait for the very threads that are stuck.
    if (deadline_ && now() >= *deadline_) ::_exit(0);
  }
}

void EndingGuard::take(int signal) {
  if (signal != SIGHUP) {
    is_end_asked_for_ = true;
    const auto last = now() + (deadline_ ? kLastMoment : std::max(limit_.load(), kLastMoment));
    deadline_ = deadline_ ? std::min(*deadline_, last) : last;
  }
  on_signal_(signal);
}

}  // namespace muster

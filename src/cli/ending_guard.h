#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace muster {

/// Takes the signals of a server on a thread of its own, and sees to it that the process ends in
/// time whatever else holds it up: a loop that is busy, a thread that cannot be joined, a disk that
/// takes nothing.
///
/// After the first SIGINT or SIGTERM the process has `limit` to end; a second one leaves it
/// `kLastMoment`. Then it is ended from here.
///
/// Threads: made and destroyed on one thread; callbacks come on the guard's own.
class EndingGuard {
 public:
  /// For what is under way in the turn of a loop, and a worker to be told.
  static constexpr Duration kLastMoment = std::chrono::seconds(1);

  /// The signals of this thread, and of those that it starts from now on, come here.
  ///
  /// on_signal: told of SIGINT, SIGTERM and SIGHUP.
  /// Errors: those of the system.
  static Result<std::unique_ptr<EndingGuard>> start(Duration limit,
                                                    std::function<void(int signal)> on_signal);
  ~EndingGuard();
  EndingGuard(const EndingGuard&) = delete;
  EndingGuard& operator=(const EndingGuard&) = delete;

  /// How long the end may take; for signals that come later.
  void set_limit(Duration limit) { limit_ = limit; }

  /// SIGINT or SIGTERM has come, whether or not somebody acts on it yet. Threads: thread-safe.
  bool is_end_asked_for() const { return is_end_asked_for_; }

 private:
  EndingGuard(UniqueFd signals, UniqueFd stop, Duration limit, std::function<void(int)> on_signal);
  void run();
  void take(int signal);

  UniqueFd signals_;
  UniqueFd stop_;
  std::atomic<Duration> limit_;
  std::atomic<bool> is_end_asked_for_ = false;
  std::function<void(int)> on_signal_;
  std::optional<TimePoint> deadline_;  // the thread's, since the first signal
  std::jthread thread_;
};

}  // namespace muster

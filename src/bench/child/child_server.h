#pragma once

#include <sys/types.h>

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace muster {

struct HttpAnswer;

/// A server program that is started for a benchmark, on a port that it chooses itself, and ended
/// with it.
///
/// The program prints a line with "listening on http://HOST:PORT" on either standard stream. What
/// it prints is read to its end, and its last 4 KB are kept for messages. It is told to end when
/// this is destroyed, also where somebody has stopped it (SIGSTOP), and killed when it has not
/// ended 30 s later. Threads: not thread-safe.
class ChildServer {
 public:
  /// Waits for that line. environment: the program's ("NAME=value"); nullopt: ours.
  ///
  /// Errors: NotFound (no such program), that of a muster that ended (what it said, its exit code's
  /// kind), Unavailable (another ended; with what it said), DeadlineExceeded, Cancelled.
  static Result<std::unique_ptr<ChildServer>> start(
      const std::vector<std::string>& words, Duration limit,
      const std::function<bool()>& is_cancelled,
      const std::optional<std::vector<std::string>>& environment = std::nullopt);
  ~ChildServer();
  ChildServer(const ChildServer&) = delete;
  ChildServer& operator=(const ChildServer&) = delete;

  /// "http://127.0.0.1:41234".
  const std::string& url() const { return url_; }

  /// Asks `target` until `is_enough` of an answer: "/v1/devices". is_cancelled: also asked on
  /// another thread; a question under way is then not waited for.
  ///
  /// Errors: as `start`; that of `is_enough`, at once.
  Status wait_for_answer(std::string_view target,
                         const std::function<Result<bool>(const HttpAnswer&)>& is_enough,
                         Duration limit, const std::function<bool()>& is_cancelled) const;

  /// The same until it answers 200: "/readyz".
  Status wait_until_ready(std::string_view target, Duration limit,
                          const std::function<bool()>& is_cancelled) const;

  /// Errors: Unavailable (it has ended; with the signal that ended it, and what it said, unless it
  /// was killed or told to end).
  Status check_running() const;

  /// Its own process id and those of the processes that it has started, as far as they live.
  std::vector<pid_t> processes() const;

  /// CPU seconds that it and the processes it has started have taken, as far as they live.
  double cpu_seconds() const;

 private:
  /// Descriptors of a child: to wait for its end, to read what it prints, and an event of ours that
  /// says that its address has come.
  struct Descriptors {
    UniqueFd process;
    UniqueFd output;
    UniqueFd said;
  };

  ChildServer(pid_t pid, Descriptors descriptors);
  void read_output();
  bool has_ended() const;
  bool ends_by(TimePoint limit) const;
  std::string last_words() const;
  std::string how_it_ended() const;
  Error end_error(std::string_view who) const;

  const pid_t pid_;
  const Descriptors descriptors_;
  std::string url_;
  std::promise<void> all_read_;
  const std::future<void> is_all_read_ = all_read_.get_future();
  mutable Mutex mutex_;
  std::string tail_ MUSTER_GUARDED_BY(mutex_);
  std::string said_url_ MUSTER_GUARDED_BY(mutex_);
  std::jthread reader_;
};

}  // namespace muster

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "log/log_line.h"
#include "net/event_loop.h"

namespace muster {

/// One request that was answered, as far as the log may know it: no text and no key.
struct AnsweredRequest {
  std::string_view method = {};
  std::string_view path = {};    // as the client sent it; its beginning is shown
  std::string_view asker = {};   // "key ci", or an address
  std::string_view reason = {};  // of a refusal: a word of the server's own
  std::string_view request_id = {};
  std::optional<std::uint64_t> text_count = {};
  std::optional<std::uint64_t> token_count = {};
  int status = 0;
  double milliseconds = 0;
  bool is_probe = false;  // of a route that asks how the server is: a 503 is its answer
};

/// What the log says of requests: at debug a line for each; of refusals one line a second for each
/// kind at most, and how many more there were; what an administrator does, at once.
///
/// A refusal is an answer that tells a client to come otherwise, later or not at all: 401, 403,
/// 408, 413, 429, 431 and all from 500 on, but for probes. Other faults of a client are lines at
/// debug alone.
///
/// Threads: belongs to the loop's thread.
class RequestLog {
 public:
  using Write = std::function<void(const LogLine&)>;

  /// write: where lines go; empty: nowhere.
  RequestLog(Write write, LogLevel level, EventLoop& loop, const Clock& clock);

  void set_level(LogLevel level) { level_ = level; }

  /// A line about something that a request has done.
  void event(LogLevel level, std::string_view text, std::string_view request_id) const;

  /// Whether there is anything to say of an answer with this status.
  bool wants(int status) const;
  void answered(const AnsweredRequest& request);

  /// What was counted and not told yet, and nothing after it.
  void stop();

 private:
  struct Kind {
    TimePoint told_at{};
    std::uint64_t untold_count = 0;
  };

  void refused(const AnsweredRequest& request);
  void tell_untold();

  Write write_;
  LogLevel level_;
  const Clock& clock_;
  std::unique_ptr<EventLoop::Timer> timer_;
  std::map<std::pair<int, std::string>, Kind> kinds_;  // by status and reason
};

}  // namespace muster

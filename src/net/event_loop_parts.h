#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "net/event_loop.h"

namespace muster {

/// What an EventLoop calls when a descriptor is ready.
class ReadySink {
 public:
  /// events: those of epoll that hold now. It may remove any descriptor, its own too.
  virtual void on_ready(std::uint32_t events) = 0;

 protected:
  ~ReadySink() = default;
};

/// What an EventLoop calls when a time has come.
class TimeSink {
 public:
  virtual void on_time() = 0;

 protected:
  ~TimeSink() = default;
};

/// The inside of an EventLoop: epoll, level-triggered, with an eventfd for `post` and a timerfd for
/// the earliest time. Readiness instead of completions: what waits owns no buffer, so a connection
/// that is idle costs next to nothing.
struct EventLoop::Parts {
  using Timers = std::multimap<TimePoint, TimeSink*>;

  /// Names a registration; a stale one is never called.
  struct Handle {
    int fd = -1;
    std::uint32_t slot = 0;
  };

  Parts();
  ~Parts() = default;

  /// events: EPOLLIN, EPOLLOUT, EPOLLRDHUP; errors and hang-ups are always told. One registration
  /// for a descriptor at a time, and the descriptor outlives it.
  Handle add(int fd, std::uint32_t events, ReadySink& sink);
  void change(const Handle& handle, std::uint32_t events);
  void remove(const Handle& handle);

  void run();
  void stop();
  void post(std::function<void()> task);

  /// True on the thread that runs the loop, while it does.
  bool is_on_loop() const { return loop_thread_.load() == std::this_thread::get_id(); }

  /// When the loop last woke up.
  TimePoint woke_at = std::chrono::steady_clock::now();
  Timers timers;

  /// How long before a time the loop is to be awake already (EventLoop::Wait::Polling).
  Duration lead() const;
  /// Until then the loop does not sleep.
  TimePoint polls_until = TimePoint::min();

 private:
  struct Slot {
    ReadySink* sink = nullptr;  // nullptr: free
    std::uint32_t generation = 0;
  };

  bool has_tasks();
  void wake();
  void arm();
  void run_tasks();
  void run_timers();
  void run_ready();
  void on_alarm(bool slept);
  std::uint64_t key_of(std::uint32_t slot) const;

  UniqueFd epoll_;
  UniqueFd wake_event_;
  UniqueFd alarm_;
  std::optional<TimePoint> armed_at_;
  Duration alarm_lag_{};  // how late alarms ring: a mean in which the newest counts a sixteenth
  std::deque<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::deque<std::function<void()>> running_;  // taken from `posted_`
  std::atomic<bool> is_stopped_ = false;
  std::atomic<std::thread::id> loop_thread_;

  Mutex mutex_;
  std::deque<std::function<void()>> posted_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster

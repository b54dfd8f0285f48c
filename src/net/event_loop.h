#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"

namespace muster {

/// One thread that waits for many things: descriptors, times and what other threads post.
///
/// Threads: `post` and `stop` are thread-safe; all else belongs to the thread that calls `run`, or
/// to the one before `run`. Every callback is called on that thread and must not block.
class EventLoop {
 public:
  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// Runs callbacks until `stop`.
  void run();
  void stop();
  void post(std::function<void()> task);

  /// While it lives, `on_readable` is called whenever `fd` is readable or hung up
  /// (level-triggered). It may be destroyed from within its own callback.
  class Watch {
   public:
    virtual ~Watch() = default;
  };
  std::unique_ptr<Watch> watch(int fd, std::function<void()> on_readable);

  /// One time at a time; `set` replaces it. Destroying or clearing it means that it is not called.
  class Timer {
   public:
    virtual ~Timer() = default;
    virtual void set(TimePoint at) = 0;
    virtual void clear() = 0;
  };
  std::unique_ptr<Timer> timer(std::function<void()> on_time);

  /// The Asio context below, for the adapters of this module alone.
  struct Parts;
  Parts& parts() { return *parts_; }

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace muster

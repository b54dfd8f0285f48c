#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"

namespace muster {

/// One thread that waits for many things: descriptors, times and what other threads post.
///
/// It outlives its watches and timers. What was posted and not run is dropped with it.
/// Threads: `post` and `stop` are thread-safe; all else belongs to the thread that calls `run`, or
/// to the one before `run`. Every callback is called on that thread and must not block.
class EventLoop {
 public:
  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// Runs callbacks until `stop`; it may be run again after that. A stop before it counts. The
  /// thread has short slices from then on (base/thread_slice.h).
  void run();
  void stop();
  void post(std::function<void()> task);

  /// While it lives, `on_readable` is called whenever `fd` is readable or hung up
  /// (level-triggered). It may be destroyed from within its own callback. The descriptor outlives
  /// it, is one that epoll knows (no plain file) and has no other watch.
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
  /// How a timer's last moment is waited for. Asleep: the thread sleeps, and its processor may too;
  /// waking both takes as long as the machine takes (60 to 150 us in virtual machines). Polling:
  /// for the last moment, as long as wake-ups have proved late on this loop (twice their mean, at
  /// most 200 us), the loop asks without sleeping and is on time to a few microseconds. That costs
  /// processor time, at most 200 us a call, which others who want the processor get.
  enum class Wait { Asleep, Polling };
  std::unique_ptr<Timer> timer(std::function<void()> on_time, Wait wait = Wait::Asleep);

  /// The inside, for the adapters of this module alone.
  struct Parts;
  Parts& parts() { return *parts_; }

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace muster

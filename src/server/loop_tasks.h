#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "net/event_loop.h"

namespace muster {

/// Long work on the loop's thread, cut into slices: one slice of one task a turn of the loop, the
/// tasks in rotation. Whoever else has something for the loop waits for one slice, however many
/// clients ask for much at once.
///
/// Threads: the loop's.
class LoopTasks {
 public:
  /// loop: outlives this. What is left is dropped with it.
  explicit LoopTasks(EventLoop& loop) : loop_(loop) {}
  LoopTasks(const LoopTasks&) = delete;
  LoopTasks& operator=(const LoopTasks&) = delete;

  /// step: does a millisecond's work or so; false when there is no more to do.
  void add(std::function<bool()> step);

 private:
  void run_soon();

  EventLoop& loop_;
  std::deque<std::function<bool()>> steps_;
  std::shared_ptr<bool> is_here_ = std::make_shared<bool>(true);  // for what is posted already
};

}  // namespace muster

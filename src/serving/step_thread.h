#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "net/event_loop.h"

namespace muster {

/// Long work beside the loop, cut into steps of about a millisecond: a thread takes one step of one
/// task after another, the tasks in rotation, so that a short one does not wait for a long one.
///
/// Threads: belongs to the loop's; steps run on the thread of its own.
class StepThread {
 public:
  using TaskId = std::uint64_t;

  /// loop: outlives this. The thread starts with the first task.
  explicit StepThread(EventLoop& loop) : loop_(loop) {}
  StepThread(const StepThread&) = delete;
  StepThread& operator=(const StepThread&) = delete;
  /// Waits for the step that runs; what is left is dropped.
  ~StepThread();

  /// step: called until it says true, that was all; gone by then. on_done: called once on the loop
  /// after that, never before this returns.
  TaskId run(std::function<bool()> step, std::function<void()> on_done);

  /// `on_done` is dropped now, and so is `step`; one that runs is dropped when it returns. Unknown
  /// ids are ignored.
  void cancel(TaskId id);

  /// Tasks whose `on_done` has not been called.
  std::size_t task_count() const { return waiting_.size(); }

 private:
  struct Task {
    TaskId id = 0;
    std::function<bool()> step;
    std::shared_ptr<std::atomic<bool>> is_cancelled;
  };
  struct Waiting {
    std::function<void()> on_done;
    std::shared_ptr<std::atomic<bool>> is_cancelled;
  };

  void work();
  void finish(TaskId id);

  EventLoop& loop_;
  std::map<TaskId, Waiting> waiting_;  // the loop's
  TaskId next_id_ = 1;
  std::shared_ptr<bool> is_here_ = std::make_shared<bool>(true);  // for what is posted already

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;  // guarded by mutex_
  bool is_ending_ = false;  // guarded by mutex_
  std::jthread thread_;
};

}  // namespace muster

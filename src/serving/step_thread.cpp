// One thread, many tasks in rotation. What a task ends with goes to the loop, which alone knows who
// waits for it.

#include "serving/step_thread.h"

#include <algorithm>
#include <utility>

namespace muster {

StepThread::~StepThread() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

StepThread::TaskId StepThread::run(std::function<bool()> step, std::function<void()> on_done) {
  const TaskId id = next_id_++;
  const auto is_cancelled = std::make_shared<std::atomic<bool>>(false);
  waiting_.emplace(id, Waiting{std::move(on_done), is_cancelled});
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back({id, std::move(step), is_cancelled});
  }
  changed_.notify_one();
  if (!thread_.joinable()) thread_ = std::jthread([this] { work(); });
  return id;
}

void StepThread::cancel(TaskId id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return;
  found->second.is_cancelled->store(true);
  waiting_.erase(found);
  Task task;  // which goes after the lock
  const std::lock_guard lock(mutex_);
  const auto queued = std::find_if(tasks_.begin(), tasks_.end(),
                                   [id](const Task& other) { return other.id == id; });
  if (queued == tasks_.end()) return;
  task = std::move(*queued);
  tasks_.erase(queued);
}

void StepThread::work() {
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_ending_ || !tasks_.empty(); });
      if (is_ending_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    if (!task.is_cancelled->load() && !task.step()) {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
      continue;
    }
    task.step = nullptr;  // what it holds goes here, before the loop hears of it
    loop_.post([this, id = task.id, alive = std::weak_ptr(is_here_)] {
      if (!alive.expired()) finish(id);
    });
  }
}

void StepThread::finish(TaskId id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return;
  const auto on_done = std::move(found->second.on_done);
  waiting_.erase(found);
  on_done();
}

}  // namespace muster

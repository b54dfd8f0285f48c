// Long work in slices: each turn of the loop takes the first task, runs one slice of it and puts it
// behind the others.

#include "server/loop_tasks.h"

#include <utility>

namespace muster {

void LoopTasks::add(std::function<bool()> step) {
  steps_.push_back(std::move(step));
  if (steps_.size() == 1) run_soon();
}

void LoopTasks::run_soon() {
  loop_.post([this, alive = std::weak_ptr(is_here_)] {
    if (alive.expired()) return;
    // It stays in the list while it runs, so that what it adds does not post a second time.
    auto step = std::move(steps_.front());
    const bool has_more = step();
    steps_.pop_front();
    if (has_more) steps_.push_back(std::move(step));
    if (!steps_.empty()) run_soon();
  });
}

}  // namespace muster

// One step under way: the next begins when the disk has this one, with all that has come meanwhile.

#include "jobs/durable_steps.h"

#include <utility>

#include "base/check.h"

namespace muster {

DurableSteps::DurableSteps(MakeDurable make_durable)
    : make_durable_(std::move(make_durable)), thread_([this] { run(); }) {}

DurableSteps::~DurableSteps() {
  {
    const MutexLock lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void DurableSteps::begin(const RunStep& step) {
  {
    const MutexLock lock(mutex_);
    MUSTER_CHECK(!step_ && !outcome_);
    step_ = step;
  }
  changed_.notify_all();
}

bool DurableSteps::is_under_way() const {
  const MutexLock lock(mutex_);
  return step_.has_value();
}

std::optional<Result<RunStep>> DurableSteps::take() {
  const MutexLock lock(mutex_);
  return std::exchange(outcome_, std::nullopt);
}

std::optional<Result<RunStep>> DurableSteps::wait() {
  const MutexLock lock(mutex_);
  while (step_) changed_.wait(mutex_);
  return std::exchange(outcome_, std::nullopt);
}

// A step that has begun is done even at the end: what is durable should count.
void DurableSteps::run() {
  for (;;) {
    std::optional<RunStep> step;
    {
      const MutexLock lock(mutex_);
      while (!step_ && !is_over_) changed_.wait(mutex_);
      if (!step_) return;
      step = step_;
    }
    const auto done = make_durable_(*step);
    {
      const MutexLock lock(mutex_);
      if (done) {
        outcome_ = *step;
      } else {
        outcome_ = done.error();
      }
      step_.reset();
    }
    changed_.notify_all();
  }
}

}  // namespace muster

#pragma once

#include <condition_variable>
#include <functional>
#include <optional>
#include <thread>

#include "base/mutex.h"
#include "base/result.h"
#include "dataset/run_journal.h"

namespace muster {

/// Makes the steps of a run durable on a thread of its own, one at a time: a disk that takes a
/// second for what it was given must not keep the devices waiting.
///
/// Threads: not thread-safe; owned by the loop of the run. `make_durable` is called on its thread.
class DurableSteps {
 public:
  using MakeDurable = std::function<Status(const RunStep&)>;

  explicit DurableSteps(MakeDurable make_durable);
  /// Waits for the step that is under way.
  ~DurableSteps();
  DurableSteps(const DurableSteps&) = delete;
  DurableSteps& operator=(const DurableSteps&) = delete;

  /// Only while none is under way, and none is to be taken.
  void begin(const RunStep& step);

  bool is_under_way() const;

  /// What became of the step, once; nullopt as long as it is under way, or where there is none.
  std::optional<Result<RunStep>> take();

  /// The same, when it is done.
  std::optional<Result<RunStep>> wait();

 private:
  void run();

  const MakeDurable make_durable_;
  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  bool is_over_ MUSTER_GUARDED_BY(mutex_) = false;
  std::optional<RunStep> step_ MUSTER_GUARDED_BY(mutex_);             // that is under way
  std::optional<Result<RunStep>> outcome_ MUSTER_GUARDED_BY(mutex_);  // of the last one
  std::jthread thread_;
};

}  // namespace muster

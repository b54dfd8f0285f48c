#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/result.h"
#include "scheduler/fair_order.h"

namespace muster {

/// Prompts that wait to be read, on their way to the thread beside the loop. Keys take turns by the
/// bytes of their prompts (scheduler/fair_order.h), a key's own in their order: whoever sends long
/// ones makes another wait for the one that is being read, and for no more.
///
/// Threads: thread-safe; one takes.
class PromptQueue {
 public:
  using Job = std::function<void()>;

  explicit PromptQueue(std::size_t capacity) : capacity_(capacity) {}

  /// Errors: ResourceExhausted when full, Cancelled when closed; the job is dropped.
  Status push(FlowId flow, std::uint64_t bytes, Job job);

  /// So many more would be taken, where nobody else pushes meanwhile.
  bool has_room_for(std::size_t count) const;

  /// Waits for a job; nullopt once it is closed, and what is left is dropped with it.
  std::optional<Job> take();

  void close();

 private:
  struct Waiting {
    FlowId flow = 0;
    std::uint64_t cost = 0;
    Job job;
  };
  using Place = std::pair<std::uint64_t, std::uint64_t>;  // its rank, and when it came

  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  FairOrder order_;                   // guarded by mutex_
  std::map<Place, Waiting> waiting_;  // guarded by mutex_
  std::uint64_t next_number_ = 0;     // guarded by mutex_
  bool is_closed_ = false;            // guarded by mutex_
};

}  // namespace muster

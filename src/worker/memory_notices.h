#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"

namespace muster {

/// What the log is told of how many tokens of one model a GPU computes at once: a device whose
/// memory others take is slower, and nothing else would say why.
///
/// While memory stays short, the engine's budget is doubled after some passes and halved at the
/// next one, several times a second. So each new low is told, and once that all is there again:
/// when it has been so for kSettled.
///
/// Threads: any; what several lanes see is told once.
class MemoryNotices {
 public:
  static constexpr Duration kSettled = std::chrono::seconds(10);

  /// whole: tokens at once while memory is not short.
  explicit MemoryNotices(std::size_t whole) : whole_(whole), told_(whole) {}

  /// What is new about so many tokens at once; nullopt: nothing.
  std::optional<std::string> look(std::size_t tokens, TimePoint now);

  /// Whether a batch was computed in more passes than it needs where memory is not short.
  /// at_once: the fewest tokens at once that were seen while it was computed.
  bool was_cut(std::size_t batch_tokens, std::size_t at_once) const {
    return at_once < std::min(batch_tokens, whole_);
  }

 private:
  const std::size_t whole_;
  Mutex mutex_;
  std::size_t told_ MUSTER_GUARDED_BY(mutex_);
  std::optional<TimePoint> whole_since_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster

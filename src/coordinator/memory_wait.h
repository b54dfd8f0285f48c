#pragma once

#include <cstdint>

#include "base/clock.h"

namespace muster {

/// When something is tried again that found no memory on a device: a model's load, or its canary.
/// Others hold the memory, and may let it go at any time, so that nobody has to ask for the try:
/// after 1 s, then 2, 4, … 60 at most.
///
/// Pure. Threads: owned by the coordinator's loop.
class MemoryWait {
 public:
  /// There was no memory, for the first time or once more.
  void on_full(TimePoint now);

  /// There was memory, and what the answer means is not known yet: nothing is tried again until it
  /// is.
  void on_answered() { at_ = TimePoint::max(); }

  /// How often in a row there was none.
  std::uint32_t full_count() const { return full_count_; }

  /// When it is tried again (never: TimePoint::max()), and how long that is after the last try.
  TimePoint at() const { return at_; }
  Duration pause() const { return pause_; }

 private:
  std::uint32_t full_count_ = 0;
  TimePoint at_{};
  Duration pause_{0};
};

}  // namespace muster

#pragma once

#include "base/clock.h"

namespace muster {

/// When work that can wait is due: it takes at most one part in so many of the time, however slow
/// it is.
///
/// Threads: not thread-safe; owned by whoever does the work.
class TimeShare {
 public:
  /// parts: 20 for a twentieth of the time.
  explicit TimeShare(int parts) : parts_(parts) {}

  bool is_due(TimePoint now) const { return now >= due_at_; }

  /// The work was done from `begin` to `end`.
  void note(TimePoint begin, TimePoint end) { due_at_ = end + (parts_ - 1) * (end - begin); }

 private:
  int parts_;
  TimePoint due_at_ = TimePoint::min();  // at once
};

}  // namespace muster

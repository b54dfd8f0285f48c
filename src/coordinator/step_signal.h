#pragma once

#include <utility>

#include "base/unique_fd.h"

namespace muster {

/// What the parts of the fleet raise when there is something to do for its next `step`, and what
/// they have changed for its owner to see. In a step nobody needs to be woken: it does all that
/// follows before it ends.
///
/// Threads: owned by the fleet's loop.
class StepSignal {
 public:
  StepSignal();

  /// Readable after `wake` until the next step: the loop that waits for it takes a step.
  int fd() const { return fd_.get(); }

  /// The next step is due at once. Only whoever asks for the fleet's next deadline learns it: for
  /// callers who ask anyway before they wait, which saves two system calls.
  void make_due() { is_due_ |= !is_in_step_; }

  /// As `make_due`, and a loop that waits already is woken.
  void wake();

  /// A group or a model has changed its state: the owner is told in the next step.
  void change() {
    has_changed_ = true;
    wake();
  }

  bool is_due() const { return is_due_; }

  /// What made the next step due is done without one; what woke the loop still is for the step.
  void settle() { is_due_ = is_woken_; }

  /// True when the step was due at once.
  bool begin_step();
  void end_step() { is_in_step_ = false; }

  /// Whether something has changed since the last call.
  bool take_change() { return std::exchange(has_changed_, false); }

 private:
  UniqueFd fd_;  // an eventfd
  bool is_due_ = false;
  bool is_woken_ = false;  // fd_ is readable
  bool is_in_step_ = false;
  bool has_changed_ = false;
};

}  // namespace muster

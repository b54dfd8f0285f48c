#pragma once

#include <cstddef>

#include "base/clock.h"
#include "coordinator/device_health.h"

namespace muster {

/// For each token that a step of a decoder computes: slower than that is of no use.
inline constexpr Duration kTokenAllowance = std::chrono::milliseconds(500);

/// When a worker that generates counts as hung. It says what it is at: so many tokens when a step
/// begins that computes more than the next one of each sequence, prompts in chunks or again what
/// gave way to others, and it speaks after every step (wire/generation_messages.h). So the limit is
/// that of the step that it is at. Streams that it is given meanwhile, and their contexts, make it
/// no longer.
///
/// It may be silent for ten times what a step of so many tokens has taken this process, and for at
/// least 20 s. Ten: a token far back in a long context costs several times one at its beginning,
/// and another decoder on the same cores takes half of them or more. 20 s: a machine that swaps, or
/// that reads another model from its disk, stands still for seconds. Never longer than
/// `silence_most` and kTokenAllowance for each token; this alone holds until a step was measured,
/// and for the first one after a minute of silence: these read weights from the disk, or from where
/// the system has moved them meanwhile.
///
/// Threads: not thread-safe; owned by the loop that hears the worker.
class StepWatch {
 public:
  /// It has said something: from now on a step of so many tokens is awaited, of one at least.
  void expect(TimePoint now, std::size_t token_count);

  /// That step is done; how long it has taken is learnt. The caller expects the next one.
  void on_step_done(TimePoint now);

  /// Its silence counts from now on: until now nothing was awaited of it, or this process itself
  /// stood still. The step that it may be at is the same, and teaches nothing.
  void start_over(TimePoint now);

  /// From when on its silence counts.
  TimePoint since() const { return since_; }

  /// From then on it counts as hung.
  TimePoint until(Duration silence_most) const { return since_ + allowed(silence_most); }

  /// It has been silent for a quarter of that: whoever has the choice gives a new stream to another
  /// one.
  bool is_late(TimePoint now, Duration silence_most) const;

 private:
  Duration allowed(Duration silence_most) const;

  TimePoint since_{};
  std::size_t token_count_ = 1;    // of the step that it is at
  bool has_begun_before_ = false;  // that step's time is not known
  bool is_warm_ = false;           // it has done one, and was not idle for long since
  Calibration pace_;
};

}  // namespace muster

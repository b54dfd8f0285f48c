#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "base/clock.h"
#include "spec/serving.h"

namespace muster {

/// What batches of each size cost on one device while it was well: its own measure, against which
/// it is held later.
///
/// Sizes are kept apart by powers of two, because a small batch costs more a token than a large
/// one. A size that was never seen is predicted from the nearest larger one (which costs at least
/// as much), else from the nearest smaller one by the ratio of tokens.
///
/// Not the scheduler's CostModel: that one follows a device wherever it goes, so that sizes and
/// waits are predicted as things are, and knows whole batches of texts only. This one remembers how
/// the device was while well, counts canaries too, and must predict too much rather than too
/// little, because what exceeds it is held against the device. Steps of decoders are measured so,
/// too (step_watch.h).
///
/// Pure. Threads: owned by the coordinator's loop.
class Calibration {
 public:
  void learn(std::uint64_t token_count, Duration engine);

  /// nullopt before the first batch.
  std::optional<Duration> predict(std::uint64_t token_count) const;

 private:
  struct Size {
    double seconds = 0;  // exponentially weighted mean; 0: never seen
    double tokens = 0;   // likewise, of those batches
  };
  std::array<Size, 33> sizes_;  // by floor(log2(tokens)), the last for all above
};

/// Whether one device is slower than its own calibration. Its first twenty batches teach it and are
/// not judged; afterwards what looks slow is not learnt.
///
/// Slow are three batches in a row of together half a second, each over five times its prediction;
/// or one and the batch that runs after it, once both have taken 0.8 s.
///
/// A batch that was cut, since others took the device's memory, tells nothing of its speed: it is
/// neither judged nor learnt, is none of the twenty, and ends a row of slow ones.
///
/// Pure. Threads: owned by the coordinator's loop.
class DeviceHealth {
 public:
  void on_served(ModelId model, std::uint64_t token_count, Duration engine);

  /// A batch was computed in smaller passes for want of memory.
  void on_cut() { forget_slowness(); }

  /// running: how long the batch that runs now has been running.
  bool is_slow(Duration running) const;

  /// How long a batch may run from now on until `is_slow`; nullopt while nothing looks slow.
  std::optional<Duration> slow_in(Duration running) const;

  /// Its last batch was over five times its prediction.
  bool looks_slow() const { return slow_count_ > 0; }

  std::optional<Duration> predict(ModelId model, std::uint64_t token_count) const;

  /// True when `engine` is within twice the calibrated time (and four milliseconds, a time slice of
  /// the operating system), or nothing is calibrated yet.
  bool is_in_time(ModelId model, std::uint64_t token_count, Duration engine) const;

  /// A new worker, or one that came back: what looked slow is forgotten, what was learnt is kept.
  void forget_slowness();

  /// The model was unloaded; its number comes never again.
  void forget(ModelId model);

 private:
  std::map<ModelId, Calibration> calibrations_;
  std::map<ModelId, std::uint32_t> batch_counts_;
  std::uint32_t slow_count_ = 0;  // in a row
  Duration slow_time_{0};
};

/// One device in quarantine for slowness: when its canaries are due, and what came of them.
///
/// Canaries every second, then after two, four, … thirty; a good one brings the next one after a
/// second. Two good ones in a row end it; after ten seconds without them the worker is started
/// again.
///
/// Pure. Threads: owned by the coordinator's loop.
class SlowQuarantine {
 public:
  explicit SlowQuarantine(TimePoint began_at);

  TimePoint canary_at() const { return canary_at_; }
  TimePoint restart_at() const { return restart_at_; }

  void on_canary_sent(TimePoint now);

  /// True when the quarantine is over.
  bool on_canary(TimePoint now, bool is_good);

 private:
  TimePoint canary_at_;
  TimePoint restart_at_;
  Duration period_;
  std::uint32_t good_count_ = 0;
};

}  // namespace muster

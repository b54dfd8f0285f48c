#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace muster {

/// What a batch costs on one device, learnt from the batches it has done: seconds per token as an
/// exponentially weighted mean. It gives the deadline after which a silent worker counts as hung.
///
/// Pure. Threads: owned by the coordinator's loop.
class CostModel {
 public:
  /// A batch of `token_count` tokens took `engine` time.
  void learn(std::uint64_t token_count, Duration engine);

  /// nullopt before the first batch.
  std::optional<Duration> predict(std::uint64_t token_count) const;

  /// How long a worker may stay silent on a batch: five times the prediction and at least a second,
  /// or `kFirstBatchAllowance` while nothing is known. Five, because a machine that is shared runs
  /// a batch at a third of its usual speed at worst, and the lengths in a batch differ.
  Duration silence_allowed(std::uint64_t token_count) const;

 private:
  std::optional<double> seconds_per_token_;
};

/// For the first batch of a device, whose cost nobody knows.
inline constexpr Duration kFirstBatchAllowance = std::chrono::seconds(60);

}  // namespace muster

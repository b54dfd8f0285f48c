#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace muster {

/// What a batch costs on one device, learnt from the batches it has done. A batch has a part of its
/// cost that does not grow with its tokens (frames, kernel starts), so seconds per token are kept
/// by size: an exponentially weighted mean for each power of two. A size that was not seen yet is
/// predicted from its neighbours.
///
/// It follows a device that becomes slow; whether it has become slow is judged by the coordinator's
/// Calibration, which does not follow (coordinator/device_health.h).
///
/// Pure. Threads: owned by the coordinator's loop.
class CostModel {
 public:
  /// A batch of `token_count` tokens took `engine` time.
  void learn(std::uint64_t token_count, Duration engine);

  /// nullopt before the first batch. Between two known sizes on the line through both; beyond them
  /// with the seconds per token of the nearest.
  std::optional<Duration> predict(std::uint64_t token_count) const;

  /// Tokens a second at the size that is fastest per token; nullopt before the first batch.
  std::optional<double> tokens_per_second() const;

 private:
  struct Size {
    bool is_known = false;
    double tokens = 0;  // of a batch, the mean
    double seconds_per_token = 0;
  };
  std::optional<double> predict_seconds(double tokens, std::size_t size) const;

  std::array<Size, 33> sizes_;  // [i]: batches below 2^i tokens, the last one without a bound
};

}  // namespace muster

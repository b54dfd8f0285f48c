// The ends of full batches repeat, so they lie on a circle of one full batch. A few ends are tried
// around it: their number bounds the cost, and speeds are not known more exactly than that.

#include "scheduler/batch_ends.h"

#include <algorithm>

namespace muster {
namespace {

constexpr int kTries = 16;

// Between two ends, the shorter way around the circle.
Duration distance(Duration left, Duration right, Duration circle) {
  const Duration apart = (left > right ? left - right : right - left) % circle;
  return std::min(apart, circle - apart);
}

}  // namespace

Duration time_among(Duration most, std::span<const Duration> other_ends) {
  const Duration full = std::max(most - most / 4, Duration{1});
  Duration best = full;
  Duration furthest{-1};
  for (int i = 0; i <= kTries; ++i) {
    const Duration time = full - full / 2 * i / kTries;
    Duration nearest = full;
    for (const auto end : other_ends) nearest = std::min(nearest, distance(time, end, full));
    if (nearest <= furthest) continue;
    furthest = nearest;
    best = time;
  }
  return best;
}

}  // namespace muster

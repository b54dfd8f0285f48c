// An estimate that people can plan with: it neither jumps with each batch nor forgets the first
// minutes as soon as they are over.
#include "terminal/time_left.h"

#include <cmath>

namespace muster {
namespace {

constexpr double kSpeedSeconds = 15;  // long beside a batch or a buffer, short beside a job
constexpr double kShownSeconds = 4;
constexpr double kFirstAfterSeconds = 2;               // before it the guess says nothing
constexpr double kRemainingSecondsMax = 100.0 * 3600;  // nor beyond it

}  // namespace

std::optional<double> TimeLeft::add(TimePoint now, double share) {
  const auto before = last_;
  const auto growth = share - last_share_;
  last_ = now;
  last_share_ = share;
  // What a resumed job begins with is no growth, and the time until the first growth is the start
  // of the job, not its speed.
  if (!before) return std::nullopt;
  const bool is_first_growth = !has_grown_ && growth > 0;
  has_grown_ = has_grown_ || growth > 0;
  const auto passed = seconds(now - *before);
  if (!has_grown_ || passed <= 0) return shown_;
  const auto kept = std::exp(-passed / kSpeedSeconds);
  // The first batches were under way since before anybody looked: their growth is left out.
  grown_ = kept * grown_ + (is_first_growth ? 0 : growth);
  elapsed_ = kept * elapsed_ + (is_first_growth ? 0 : passed);
  seen_seconds_ += is_first_growth ? 0 : passed;
  if (seen_seconds_ < kFirstAfterSeconds || grown_ <= 0) return std::nullopt;

  const auto estimate = (1 - share) * elapsed_ / grown_;
  const auto counted_down = std::fmax(shown_.value_or(estimate) - passed, 0);
  const auto weight = shown_ ? 1 - std::exp(-passed / kShownSeconds) : 1;
  shown_ = counted_down + weight * (estimate - counted_down);
  if (*shown_ > kRemainingSecondsMax) return std::nullopt;
  return shown_;
}

}  // namespace muster

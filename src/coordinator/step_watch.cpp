// Steps are measured from the frame that begins one, or ends the one before it, to the frame that
// ends it: the time between them is the worker's own.

#include "coordinator/step_watch.h"

#include <algorithm>
#include <optional>

namespace muster {
namespace {

constexpr int kSlack = 10;
constexpr Duration kLeast = std::chrono::seconds(20);
constexpr int kLateShare = 4;
// After so long without a step, weights may have been moved out of memory.
constexpr Duration kIdleMost = std::chrono::minutes(1);

}  // namespace

void StepWatch::expect(TimePoint now, std::size_t token_count) {
  since_ = now;
  token_count_ = std::max<std::size_t>(1, token_count);
  has_begun_before_ = false;
}

void StepWatch::on_step_done(TimePoint now) {
  if (!has_begun_before_) pace_.learn(token_count_, now - since_);
  is_warm_ = true;
}

void StepWatch::start_over(TimePoint now) {
  if (now - since_ >= kIdleMost) is_warm_ = false;
  since_ = now;
  has_begun_before_ = true;
}

bool StepWatch::is_late(TimePoint now, Duration silence_most) const {
  return now - since_ >= allowed(silence_most) / kLateShare;
}

Duration StepWatch::allowed(Duration silence_most) const {
  const auto most = silence_most + kTokenAllowance * static_cast<long>(token_count_);
  const auto usual = is_warm_ ? pace_.predict(token_count_) : std::nullopt;
  // Compared before it is multiplied: a prediction may be hours.
  if (!usual || *usual >= most / kSlack) return most;
  return std::min(most, std::max(kLeast, *usual * kSlack));
}

}  // namespace muster

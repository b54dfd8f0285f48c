// The rate at which places come free: counts that fade, and the time that they took.

#include "scheduler/place_forecast.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace muster {
namespace {

constexpr double kMemory =
    32;  // places: those of one worker, so that each reply there is seen once
constexpr double kKept = 1 - 1 / kMemory;

}  // namespace

void PlaceForecast::set_full(bool is_full, TimePoint now) {
  if (is_full == since_.has_value()) return;
  if (is_full) {
    since_ = now;
    return;
  }
  seconds_ += seconds(now - *since_);
  since_.reset();
}

void PlaceForecast::on_freed(std::size_t count, TimePoint now) {
  if (!since_) return;
  const double gap = seconds(now - *since_);
  const auto freed = static_cast<double>(count);
  const double kept = std::pow(kKept, freed);
  seconds_ = seconds_ * kept + gap;
  count_ = count_ * kept + freed;
  since_ = now;
}

std::optional<Duration> PlaceForecast::wait(std::size_t count, TimePoint now) const {
  const auto open = since_ ? now - *since_ : Duration{0};
  if (count_ <= 0) return since_ ? std::optional<Duration>(open) : std::nullopt;
  const double gap = (seconds_ + seconds(open)) / count_;
  constexpr double kMost = 86'400;  // a day stands for all that is longer
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::min(kMost, gap * static_cast<double>(count))));
}

}  // namespace muster

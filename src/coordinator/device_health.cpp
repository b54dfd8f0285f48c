// Slowness is relative: a device is measured against its own earlier batches of about the same
// size. Sizes are powers of two in tokens, and a mean over the last few batches follows slow drift
// such as heat. Batches that were far too slow teach nothing, or a failing device would make itself
// the norm. The first batches of a model always teach, since there is nothing yet to compare them
// with.

#include "coordinator/device_health.h"

#include <algorithm>
#include <bit>

namespace muster {
namespace {

constexpr double kNewWeight = 0.2;  // about the last five batches count
constexpr std::uint32_t kTeachingBatches = 20;
constexpr double kSlowFactor = 5;
constexpr std::uint32_t kSlowBatches = 3;
constexpr Duration kSlowTime = std::chrono::milliseconds(500);
constexpr Duration kSlowTimeOfOne = std::chrono::milliseconds(800);
constexpr double kGoodFactor = 2;
constexpr Duration kTimeSlice = std::chrono::milliseconds(4);

constexpr Duration kCanaryPeriod = std::chrono::seconds(1);
constexpr Duration kCanaryPeriodMax = std::chrono::seconds(30);
constexpr Duration kQuarantineUntilRestart = std::chrono::seconds(10);
constexpr std::uint32_t kGoodCanaries = 2;

Duration duration_of(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

std::size_t size_class(std::uint64_t token_count, std::size_t class_count) {
  return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(token_count)) - 1,
                               class_count - 1);
}

}  // namespace

void Calibration::learn(std::uint64_t token_count, Duration engine) {
  if (token_count == 0) return;
  auto& size = sizes_[size_class(token_count, sizes_.size())];
  const double latest = seconds(engine);
  const auto tokens = static_cast<double>(token_count);
  const bool is_first = size.tokens == 0;
  size.seconds = is_first ? latest : size.seconds + kNewWeight * (latest - size.seconds);
  size.tokens = is_first ? tokens : size.tokens + kNewWeight * (tokens - size.tokens);
}

// Larger sizes are asked before smaller ones: a prediction that is too long delays a suspicion, one
// that is too short raises a false one.
std::optional<Duration> Calibration::predict(std::uint64_t token_count) const {
  const auto tokens = static_cast<double>(std::max<std::uint64_t>(1, token_count));
  const auto own = size_class(std::max<std::uint64_t>(1, token_count), sizes_.size());
  // Within its own size a batch may hold more tokens than the mean one there.
  const auto scaled = [tokens](const Size& size) {
    return duration_of(size.seconds * std::max(1.0, tokens / size.tokens));
  };
  for (auto i = own; i < sizes_.size(); ++i) {
    if (sizes_[i].tokens > 0) return scaled(sizes_[i]);
  }
  for (auto i = own; i-- > 0;) {
    if (sizes_[i].tokens > 0) return scaled(sizes_[i]);
  }
  return std::nullopt;
}

void DeviceHealth::on_served(ModelId model, std::uint64_t token_count, Duration engine) {
  auto& calibration = calibrations_[model];
  auto& batch_count = batch_counts_[model];
  if (batch_count < kTeachingBatches) {
    ++batch_count;
    calibration.learn(token_count, engine);
    return;
  }
  if (engine > *calibration.predict(token_count) * kSlowFactor) {
    ++slow_count_;
    slow_time_ += engine;
    return;
  }
  forget_slowness();
  calibration.learn(token_count, engine);
}

// Three slow batches or one very long time: the first finds a device that limps, the second one
// that nearly stands still, without waiting for the third batch.
bool DeviceHealth::is_slow(Duration running) const {
  return slow_count_ > 0 && ((slow_count_ >= kSlowBatches && slow_time_ >= kSlowTime) ||
                             slow_time_ + running >= kSlowTimeOfOne);
}

std::optional<Duration> DeviceHealth::slow_in(Duration running) const {
  if (slow_count_ == 0) return std::nullopt;
  return std::max(Duration{0}, kSlowTimeOfOne - slow_time_ - running);
}

std::optional<Duration> DeviceHealth::predict(ModelId model, std::uint64_t token_count) const {
  const auto found = calibrations_.find(model);
  return found == calibrations_.end() ? std::nullopt : found->second.predict(token_count);
}

bool DeviceHealth::is_in_time(ModelId model, std::uint64_t token_count, Duration engine) const {
  const auto predicted = predict(model, token_count);
  if (!predicted) return true;
  return engine <=
         std::max(duration_of(seconds(*predicted) * kGoodFactor), *predicted + kTimeSlice);
}

void DeviceHealth::forget_slowness() {
  slow_count_ = 0;
  slow_time_ = Duration{0};
}

void DeviceHealth::forget(ModelId model) {
  calibrations_.erase(model);
  batch_counts_.erase(model);
}

SlowQuarantine::SlowQuarantine(TimePoint began_at)
    : canary_at_(began_at + kCanaryPeriod),
      restart_at_(began_at + kQuarantineUntilRestart),
      period_(kCanaryPeriod) {}

// The period doubles while canaries are bad, so a device that stays slow is hardly disturbed; a
// good answer brings the short period back, since two in a row end the quarantine.
void SlowQuarantine::on_canary_sent(TimePoint now) {
  period_ = std::min(kCanaryPeriodMax, period_ * 2);
  canary_at_ = now + period_;
}

bool SlowQuarantine::on_canary(TimePoint now, bool is_good) {
  good_count_ = is_good ? good_count_ + 1 : 0;
  if (is_good) {
    period_ = kCanaryPeriod;
    canary_at_ = now + period_;
  }
  return good_count_ >= kGoodCanaries;
}

}  // namespace muster

// A death is answered with a restart at once; the third within ten seconds begins a back-off that
// doubles. Starts that fail by the worker's own fault count apart, because a program that cannot
// start never will. One served batch forgives early deaths; ends that were the worker's fault are
// forgiven only after many, so that a device which breaks now and then is still found.

#include "coordinator/restart_policy.h"

#include <algorithm>

namespace muster {
namespace {

constexpr Duration kWindow = std::chrono::seconds(10);
constexpr std::size_t kDeathsInWindow = 3;
constexpr std::uint32_t kFailedStartsMax = 3;
constexpr std::uint32_t kFaultsMax = 3;
constexpr std::uint32_t kWellBatches = 100;
constexpr Duration kBackoffMin = std::chrono::milliseconds(100);
constexpr Duration kBackoffMax = std::chrono::seconds(30);

}  // namespace

std::optional<Duration> RestartPolicy::on_death(TimePoint now, const Death& death) {
  if (death.was_ready) {
    failed_start_count_ = 0;
  } else if (death.is_own_fault) {
    ++failed_start_count_;
  }
  if (death.is_at_fault) {
    ++fault_count_;
    served_count_ = 0;
  }
  const bool cannot_start = failed_start_count_ >= kFailedStartsMax || fault_count_ >= kFaultsMax;
  if (cannot_start && gives_up_) return std::nullopt;
  deaths_.push_back(now);
  while (now - deaths_.front() > kWindow) deaths_.pop_front();
  if (deaths_.size() < kDeathsInWindow && !cannot_start) return Duration{0};
  backoff_ = std::clamp<Duration>(backoff_ * 2, kBackoffMin, kBackoffMax);
  return backoff_;
}

void RestartPolicy::on_batch_served() {
  deaths_.clear();
  failed_start_count_ = 0;
  if (fault_count_ > 0 && ++served_count_ < kWellBatches) return;
  fault_count_ = 0;
  backoff_ = Duration{0};
}

}  // namespace muster

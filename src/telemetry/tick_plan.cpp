#include "telemetry/tick_plan.h"

#include <algorithm>

namespace muster {

TickPlan::TickPlan(const std::array<Duration, kTierCount>& periods) : period_(periods[0]) {
  std::uint64_t previous = 1;
  for (std::size_t tier = 0; tier < kTierCount; ++tier) {
    // A whole multiple of the tier before it, so that a slower visit always falls on a faster one.
    const auto unit = period_ * static_cast<std::int64_t>(previous);
    const auto times = std::max<std::int64_t>((periods[tier] + unit / 2) / unit, 1);
    every_[tier] = previous * static_cast<std::uint64_t>(times);
    previous = every_[tier];
  }
}

std::uint64_t TickPlan::next(Tier tier, std::uint32_t device, std::uint64_t tick) const {
  const auto step = every(tier);
  const auto medium = every(Tier::Medium);
  // Devices 0, 1, 2, … have their medium visits one tick apart, and their slow ones, which fall on
  // medium ones, in different medium periods.
  const auto turns = every(Tier::Slow) / medium;
  const std::uint64_t offset = device % medium + medium * (device / medium % turns);
  auto next = tick + step - (tick + offset) % step;
  if (2 * (next - tick) < step) next += step;
  return next;
}

TierSet DueTiers::at(std::uint64_t tick) const {
  TierSet due;
  for (std::size_t tier = 0; tier < kTierCount; ++tier) due.set(tier, next_[tier] <= tick);
  return due;
}

void DueTiers::visited(const TickPlan& plan, std::uint32_t device, std::uint64_t tick,
                       TierSet visited) {
  for (std::size_t tier = 0; tier < kTierCount; ++tier) {
    if (visited.test(tier)) next_[tier] = plan.next(static_cast<Tier>(tier), device, tick);
  }
}

void DueTiers::hasten(Tier tier, std::uint64_t tick) {
  auto& next = next_[static_cast<std::size_t>(tier)];
  next = std::min(next, tick);
}

}  // namespace muster

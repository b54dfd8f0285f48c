// Tiers as multiples of one tick, each a multiple of the faster one, so one visit does all that
// is due. Devices take their slower visits in turns. A visit that slips is planned onto the
// device's own grid again, between half a period and one and a half later, so that devices do
// not drift together.

#include "telemetry/tick_plan.h"

#include <algorithm>

namespace muster {
namespace {

// So many devices have their medium visits in one tick: visits in a row find each other's code in
// the caches, and together they take a fraction of a period.
constexpr std::uint32_t kGroup = 8;

}  // namespace

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
  // Groups of devices have their medium visits one tick apart, and their slow ones, which fall on
  // medium ones, in different medium periods.
  const std::uint64_t group = device / kGroup;
  const auto turns = every(Tier::Slow) / medium;
  const auto offset = group % medium + medium * (group / medium % turns);
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

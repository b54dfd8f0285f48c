#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"
#include "spec/reading.h"

namespace muster {

/// Which tiers of a device are due at which tick. A tick is a fast period; the slower tiers fall on
/// every n-th, so that one visit does all that is due, and the devices take turns in groups of
/// eight, so that no tick is much longer than the others.
///
/// Immutable.
class TickPlan {
 public:
  explicit TickPlan(const std::array<Duration, kTierCount>& periods);

  Duration period() const { return period_; }

  /// Ticks between two visits of a tier, at least 1.
  std::uint64_t every(Tier tier) const { return every_[static_cast<std::size_t>(tier)]; }

  /// The tick of the next visit of a tier after one at `tick`: from half a period to one and a half
  /// later, and each period exactly from then on.
  std::uint64_t next(Tier tier, std::uint32_t device, std::uint64_t tick) const;

 private:
  Duration period_;
  std::array<std::uint64_t, kTierCount> every_{};
};

/// When the tiers of one device are due; all of them at first.
///
/// Not thread-safe; owned by whoever visits the device.
class DueTiers {
 public:
  /// What is due at `tick`.
  TierSet at(std::uint64_t tick) const;

  /// The tiers of `visited` were visited at `tick`.
  void visited(const TickPlan& plan, std::uint32_t device, std::uint64_t tick, TierSet visited);

  /// The tier is due at `tick` if it was not before.
  void hasten(Tier tier, std::uint64_t tick);

 private:
  std::array<std::uint64_t, kTierCount> next_{};
};

}  // namespace muster

#include "telemetry/tick_plan.h"

#include <gtest/gtest.h>

#include <map>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TierSet tiers(const char* bits) { return TierSet(std::string(bits)); }

// The ticks up to `most` at which each set of tiers is visited.
std::map<std::uint64_t, TierSet> visits(const TickPlan& plan, std::uint32_t device,
                                        std::uint64_t most) {
  std::map<std::uint64_t, TierSet> found;
  DueTiers due;
  for (std::uint64_t tick = 0; tick <= most; ++tick) {
    const auto now = due.at(tick);
    if (now.none()) continue;
    found[tick] = now;
    due.visited(plan, device, tick, now);
  }
  return found;
}

TEST(TickPlan, TheFirstVisitDoesEverything) { EXPECT_EQ(DueTiers().at(0), tiers("111")); }

TEST(TickPlan, EveryTenthTickDoesTheMediumTierAndEveryHundredthTheSlowOne) {
  const TickPlan plan({milliseconds(100), seconds(1), seconds(10)});
  const auto found = visits(plan, 0, 200);
  EXPECT_EQ(found.size(), 201U);
  for (const auto& [tick, due] : found) {
    const bool is_medium = tick % 10 == 0;
    const bool is_slow = tick % 100 == 0;
    EXPECT_EQ(due, tiers(is_slow ? "111" : (is_medium ? "011" : "001"))) << tick;
  }
}

TEST(TickPlan, DevicesTakeTurns) {
  const TickPlan plan({milliseconds(100), seconds(1), seconds(10)});
  // Device 24 is of the group that is three ticks ahead, and its first wait is between half a
  // period and one and a half: 7 ticks.
  const auto third = visits(plan, 24, 40);
  for (const std::uint64_t tick : {7U, 17U, 27U, 37U}) EXPECT_TRUE(third.at(tick).test(1)) << tick;
  EXPECT_FALSE(third.at(10).test(1));
  // Device 64, of the eighth group, would wait two ticks only, which GPM's 100 ms between samples
  // does not allow: 12.
  const auto eighth = visits(plan, 64, 40);
  EXPECT_FALSE(eighth.at(2).test(1));
  EXPECT_TRUE(eighth.at(12).test(1));
  // The slow tier falls on a medium tick.
  const auto twelfth = visits(plan, 96, 200);
  for (const auto& [tick, due] : twelfth) {
    EXPECT_TRUE(!due.test(2) || due.test(1)) << tick;
  }
}

TEST(TickPlan, AVisitThatWasMissedIsMadeUpForAtOnce) {
  const TickPlan plan({milliseconds(100), seconds(1), seconds(10)});
  DueTiers due;
  due.visited(plan, 0, 0, tiers("111"));
  // Nothing from tick 1 to 12: the medium visit of tick 10 is due now, and the next one at 20.
  EXPECT_EQ(due.at(13), tiers("011"));
  due.visited(plan, 0, 13, tiers("011"));
  EXPECT_EQ(due.at(19), tiers("001"));
  EXPECT_EQ(due.at(20), tiers("011"));
}

TEST(TickPlan, PeriodsAreWholeMultiplesOfTheFasterOnes) {
  const TickPlan plan({milliseconds(300), seconds(1), seconds(10)});
  EXPECT_EQ(plan.every(Tier::Fast), 1U);
  EXPECT_EQ(plan.every(Tier::Medium), 3U);  // 0.9 s
  EXPECT_EQ(plan.every(Tier::Slow), 33U);   // 9.9 s, eleven medium ones
  const TickPlan slower({seconds(2), seconds(1), seconds(10)});
  EXPECT_EQ(slower.every(Tier::Medium), 1U);
  EXPECT_EQ(slower.every(Tier::Slow), 5U);
}

TEST(TickPlan, AHastenedTierIsDueNow) {
  const TickPlan plan({milliseconds(100), seconds(1), seconds(10)});
  DueTiers due;
  due.visited(plan, 0, 0, tiers("111"));
  due.hasten(Tier::Slow, 10);
  EXPECT_EQ(due.at(9), tiers("001"));
  EXPECT_EQ(due.at(10), tiers("111"));
}

}  // namespace
}  // namespace muster

#include "telemetry/energy_window.h"

#include <gtest/gtest.h>

#include "telemetry/edge_search.h"

namespace muster {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TimePoint at_ms(std::int64_t ms) { return TimePoint(milliseconds(ms)); }

EnergyEdge edge(std::int64_t ms, double joules) {
  return {0, at_ms(ms), joules, microseconds(500), ""};
}

EnergyEdge no_edge(std::string reason) { return {0, std::nullopt, 0, {}, std::move(reason)}; }

DeviceSample sample(std::int64_t ms, Reading reading, double value) {
  DeviceSample sample;
  sample.at = at_ms(ms);
  sample.readings.set(reading, value);
  return sample;
}

TEST(EnergyWindow, BetweenEdgesTheCounterIsExact) {
  const EnergyWindow window(at_ms(1000), edge(960, 5000));
  const auto energy = window.close(at_ms(3000), edge(3060, 5630));
  // 630 J in 2.1 s are 300 W; the two seconds that were asked for took 600 J.
  EXPECT_EQ(energy.method, "counter");
  EXPECT_DOUBLE_EQ(*energy.counted_joules, 630);
  EXPECT_DOUBLE_EQ(energy.counted_seconds, 2.1);
  EXPECT_DOUBLE_EQ(*energy.mean_watts, 300);
  EXPECT_DOUBLE_EQ(*energy.joules, 600);
  // Half a millisecond at each end, at 300 W.
  EXPECT_DOUBLE_EQ(*energy.error_joules, 0.3);
  EXPECT_TRUE(energy.is_exclusive);
  EXPECT_FALSE(energy.was_throttled);
}

TEST(EnergyWindow, WhatLiesBetweenAFarEdgeAndTheWindowIsDoubtful) {
  const EnergyWindow window(at_ms(1000), edge(600, 5000));
  const auto energy = window.close(at_ms(2000), edge(2600, 5600));
  EXPECT_DOUBLE_EQ(*energy.mean_watts, 300);
  EXPECT_DOUBLE_EQ(*energy.joules, 300);
  // At 300 W: half a millisecond at each end, and 300 and 500 ms more than a refresh of 100 ms.
  EXPECT_DOUBLE_EQ(*energy.error_joules, 240.3);
}

TEST(EnergyWindow, ACounterThatGoesBackGivesNoTotal) {
  const EnergyWindow window(at_ms(0), edge(0, 5000));
  const auto energy = window.close(at_ms(1000), edge(1000, 40));
  EXPECT_TRUE(energy.was_reset);
  EXPECT_EQ(energy.joules, std::nullopt);
  EXPECT_EQ(energy.missing_reason, "the energy counter was reset in the window");
}

TEST(EnergyWindow, AResetThatIsMadeUpForByTheEndIsSeen) {
  EnergyWindow window(at_ms(0), edge(0, 100));
  window.add(sample(100, Reading::GpuEnergy, 150));
  window.add(sample(200, Reading::GpuEnergy, 10));
  const auto energy = window.close(at_ms(1000), edge(1000, 400));
  EXPECT_TRUE(energy.was_reset);
  EXPECT_EQ(energy.joules, std::nullopt);
}

TEST(EnergyWindow, WithoutACounterThePowerIsIntegratedAndTheMethodSaysSo) {
  EnergyWindow window(at_ms(0), no_edge("there is no energy counter"));
  window.add(sample(0, Reading::GpuPowerInstant, 100));
  window.add(sample(1000, Reading::GpuPowerInstant, 300));
  window.add(sample(2000, Reading::GpuPowerInstant, 300));
  const auto energy = window.close(at_ms(2000), no_edge("there is no energy counter"));
  EXPECT_EQ(energy.method, "integrated");
  EXPECT_DOUBLE_EQ(*energy.joules, 200 + 300);
  EXPECT_DOUBLE_EQ(*energy.mean_watts, 250);
  // Between 100 and 300 W the curve may lie half the step away.
  EXPECT_DOUBLE_EQ(*energy.error_joules, 100);
  EXPECT_EQ(energy.counted_joules, std::nullopt);
}

TEST(EnergyWindow, WhatIsNotKnownIsNeverZero) {
  EnergyWindow window(at_ms(0), no_edge("there is no energy counter"));
  window.add(sample(500, Reading::GpuPowerInstant, 100));
  const auto energy = window.close(at_ms(1000), no_edge("there is no energy counter"));
  EXPECT_EQ(energy.joules, std::nullopt);
  EXPECT_EQ(energy.missing_reason,
            "there is no energy counter, and there are no two power readings");
  EXPECT_EQ(energy.method, "");
}

// Its power up to then is not what it took in the nine seconds behind, nor in those between.
TEST(EnergyWindow, ADeviceThatIsLostInTheWindowHasNoTotal) {
  EnergyWindow lost(at_ms(0), edge(0, 5000));
  for (int i = 0; i <= 10; ++i) lost.add(sample(100 * i, Reading::GpuPowerInstant, 300));
  const auto none = lost.close(at_ms(10'000), no_edge("the GPU is lost"));
  EXPECT_EQ(none.joules, std::nullopt);
  EXPECT_EQ(none.missing_reason, "the GPU is lost, and for 9.0 s no power was read");
  EXPECT_EQ(none.method, "");
  for (int i = 98; i <= 100; ++i) lost.add(sample(100 * i, Reading::GpuPowerInstant, 80));
  const auto back = lost.close(at_ms(10'000), no_edge("it has no counter any more"));
  EXPECT_EQ(back.missing_reason, "it has no counter any more, and for 8.8 s no power was read");
  EnergyWindow late(at_ms(0), no_edge("there is no energy counter"));
  late.add(sample(9'000, Reading::GpuPowerInstant, 300));
  late.add(sample(9'100, Reading::GpuPowerInstant, 300));
  EXPECT_EQ(late.close(at_ms(9'200), no_edge("there is no energy counter")).missing_reason,
            "there is no energy counter, and for 9.0 s no power was read");
}

// By a setting it is read every five seconds.
TEST(EnergyWindow, PowerThatIsReadSeldomIsIntegrated) {
  EnergyWindow window(at_ms(0), no_edge("there is no energy counter"));
  window.add(sample(4'000, Reading::GpuPowerInstant, 100));
  window.add(sample(9'000, Reading::GpuPowerInstant, 100));
  const auto energy = window.close(at_ms(12'000), no_edge("there is no energy counter"));
  EXPECT_EQ(energy.method, "integrated");
  EXPECT_DOUBLE_EQ(*energy.joules, 1200);
  // As much again may have been taken in the four seconds before and the three behind.
  EXPECT_DOUBLE_EQ(*energy.error_joules, 700);
}

// 4 s of 100 are less than what the sensor itself may be wrong by.
TEST(EnergyWindow, AShortSilenceInALongWindowIsPassedOver) {
  EnergyWindow window(at_ms(0), no_edge("there is no energy counter"));
  for (int i = 0; i <= 200; ++i) {
    const bool is_silent = i > 100 && i < 108;
    if (!is_silent) window.add(sample(500 * i, Reading::GpuPowerInstant, 100));
  }
  EXPECT_DOUBLE_EQ(*window.close(at_ms(100'000), no_edge("there is no energy counter")).joules,
                   10'000);
}

TEST(EnergyWindow, AWindowWithinOneRefreshIsNoZeroEither) {
  const EnergyWindow window(at_ms(1000), edge(990, 5000));
  const auto energy = window.close(at_ms(1001), edge(990, 5000));
  EXPECT_EQ(energy.joules, std::nullopt);
  EXPECT_EQ(energy.missing_reason, "the window is shorter than a refresh of the energy counter");
}

TEST(EnergyWindow, ThrottlingAndForeignProcessesAreFlagged) {
  EnergyWindow window(at_ms(0), edge(0, 0));
  window.add(sample(100, Reading::GpuClockEvents, static_cast<double>(ClockEvent::GpuIdle)));
  EXPECT_FALSE(window.close(at_ms(1000), edge(1000, 1)).was_throttled);
  window.add(sample(200, Reading::GpuClockEvents, static_cast<double>(ClockEvent::SwPowerCap)));
  window.set_shared();
  const auto energy = window.close(at_ms(1000), edge(1000, 1));
  EXPECT_TRUE(energy.was_throttled);
  EXPECT_FALSE(energy.is_exclusive);
}

TEST(EdgeDetector, TheEdgeLiesBetweenTheLastOldLookAndTheFirstNewOne) {
  EdgeDetector detector;
  EXPECT_FALSE(detector.look(at_ms(0), 10, at_ms(1)));
  EXPECT_FALSE(detector.look(at_ms(2), 10, at_ms(3)));
  const auto found = detector.look(at_ms(4), 12, at_ms(6));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->at, at_ms(4));  // from 2, where the last old look began, to 6
  EXPECT_EQ(found->within, milliseconds(2));
  EXPECT_EQ(found->joules, 12);
}

}  // namespace
}  // namespace muster

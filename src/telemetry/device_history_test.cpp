#include "telemetry/device_history.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::array<Duration, kTierCount> kPeriods{milliseconds(100), seconds(1), seconds(10)};

DeviceSample sample(std::int64_t ms, double watts, double joules) {
  DeviceSample sample;
  sample.at = TimePoint(milliseconds(ms));
  sample.tiers = TierSet(0b001);
  sample.readings.set(Reading::GpuPowerInstant, watts);
  sample.readings.set(Reading::GpuEnergy, joules);
  return sample;
}

TEST(DeviceHistory, KeepsTheNewestAndForgetsTheOldest) {
  DeviceHistory history(DeviceKind::Cuda, kPeriods, milliseconds(200));  // three rows
  for (int i = 0; i < 5; ++i) history.add(sample(100 * i, i, 1e12 + i));
  const auto points = history.points(Reading::GpuPowerInstant, TimePoint());
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[0].at, TimePoint(milliseconds(200)));
  EXPECT_EQ(points[0].value, 2);
  EXPECT_EQ(points[2].value, 4);
  // A counter keeps every joule; a float would have 2^-23 of 1e12.
  EXPECT_EQ(history.points(Reading::GpuEnergy, TimePoint())[2].value, 1e12 + 4);
}

TEST(DeviceHistory, GivesWhatIsNotOlderThanAskedFor) {
  DeviceHistory history(DeviceKind::Cuda, kPeriods, seconds(1));
  for (int i = 0; i < 5; ++i) history.add(sample(100 * i, i, i));
  const auto points = history.points(Reading::GpuPowerInstant, TimePoint(milliseconds(300)));
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].value, 3);
}

TEST(DeviceHistory, AReadingThatFailedHasNoPoint) {
  DeviceHistory history(DeviceKind::Cuda, kPeriods, seconds(1));
  history.add(sample(0, 1, 1));
  auto failed = sample(100, 2, 2);
  failed.readings.clear(Reading::GpuPowerInstant);
  history.add(failed);
  EXPECT_EQ(history.points(Reading::GpuPowerInstant, TimePoint()).size(), 1U);
  EXPECT_EQ(history.points(Reading::GpuEnergy, TimePoint()).size(), 2U);
}

TEST(DeviceHistory, OtherKindsAndNoLengthKeepNothing) {
  DeviceHistory cpu(DeviceKind::Cpu, kPeriods, seconds(1));
  cpu.add(sample(0, 1, 1));
  EXPECT_TRUE(cpu.points(Reading::GpuPowerInstant, TimePoint()).empty());
  DeviceHistory none(DeviceKind::Cuda, kPeriods, Duration::zero());
  none.add(sample(0, 1, 1));
  EXPECT_TRUE(none.points(Reading::GpuPowerInstant, TimePoint()).empty());
}

}  // namespace
}  // namespace muster

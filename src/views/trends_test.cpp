#include "views/trends.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "views/snapshot_fixture.h"

namespace muster {
namespace {

using std::chrono::seconds;

// What a device has said, by reading; the moments are seconds before now.
class Past {
 public:
  void add(Reading reading, int seconds_ago, double value) {
    points_[reading].push_back({kNow - seconds(seconds_ago), value});
  }

  std::vector<Trend> trends() const {
    auto snapshot = machine_of(1);
    snapshot.devices.pop_back();
    snapshot.at = kNow;
    return find_trends(snapshot, [this](std::uint32_t, Reading reading, Duration since) {
      std::vector<HistoryPoint> found;
      const auto all = points_.find(reading);
      if (all == points_.end()) return found;
      for (const auto& point : all->second) {
        if (point.at >= kNow - since) found.push_back(point);
      }
      return found;
    });
  }
  Trend trend() const { return trends().front(); }

 private:
  static constexpr TimePoint kNow{seconds(1000)};
  std::map<Reading, std::vector<HistoryPoint>> points_;
};

TEST(Trends, TakeRatesFromCountersOfTheLastSeconds) {
  Past past;
  past.add(Reading::GpuNvlinkSent, 30, 0);  // too long ago
  past.add(Reading::GpuNvlinkSent, 4, 10e9);
  past.add(Reading::GpuNvlinkSent, 0, 30e9);  // 5 GB/s
  past.add(Reading::GpuNvlinkReceived, 4, 0);
  past.add(Reading::GpuNvlinkReceived, 0, 4e9);  // 1 GB/s
  past.add(Reading::GpuPcieSent, 0, 7e9);        // one point gives no rate
  const auto trend = past.trend();
  EXPECT_DOUBLE_EQ(trend.nvlink_bytes_per_second.value(), 6e9);
  EXPECT_FALSE(trend.pcie_bytes_per_second);
}

TEST(Trends, GiveNoRateOverAResetOfTheCounter) {
  Past past;
  past.add(Reading::GpuEnergy, 20, 5000);
  past.add(Reading::GpuEnergy, 10, 100);
  past.add(Reading::GpuEnergy, 0, 9000);
  EXPECT_FALSE(past.trend().joules);
}

TEST(Trends, SumTheEnergyOfTheMinute) {
  Past past;
  past.add(Reading::GpuEnergy, 50, 1000);
  past.add(Reading::GpuEnergy, 0, 26'000);
  const auto trend = past.trend();
  EXPECT_DOUBLE_EQ(trend.joules.value(), 25'000);
  EXPECT_DOUBLE_EQ(trend.joules_seconds, 50);
}

TEST(Trends, HoldAReadingForAGapOfThreeSecondsAtMost) {
  Past past;
  past.add(Reading::GpuUtilization, 10, 0.25);
  past.add(Reading::GpuUtilization, 1, 0.75);
  const auto busy = past.trend().busy;
  ASSERT_EQ(busy.size(), kTrendSeconds);
  EXPECT_EQ(busy[kTrendSeconds - 1], 0.75);  // now
  EXPECT_EQ(busy[kTrendSeconds - 1 - 5], std::nullopt);
  EXPECT_EQ(busy[kTrendSeconds - 1 - 7], 0.25);  // three seconds after it was read
  EXPECT_EQ(busy[kTrendSeconds - 1 - 10], 0.25);
  EXPECT_EQ(busy[kTrendSeconds - 1 - 11], std::nullopt);
}

TEST(Trends, TellWhatShareOfTheMemoryWasInUse) {
  Past past;
  past.add(Reading::GpuMemoryUsed, 30, 150'754'820'096 / 4);
  past.add(Reading::GpuMemoryUsed, 0, 150'754'820'096 / 2);
  const auto trend = past.trend();
  ASSERT_EQ(trend.memory.size(), kTrendSeconds);
  EXPECT_EQ(trend.memory[kTrendSeconds - 1], 0.5);
  EXPECT_EQ(trend.memory[kTrendSeconds - 1 - 30], 0.25);
  EXPECT_EQ(trend.memory[kTrendSeconds - 1 - 20], std::nullopt);
  EXPECT_EQ(trend.busy_minute().size(), kMinuteSeconds);
}

TEST(Trends, DoNotCountThePageCacheOfACpuAsInUse) {
  TelemetrySnapshot snapshot;
  snapshot.devices = {busy_cpu(0)};  // 256 GB
  const auto trends = find_trends(snapshot, [&](std::uint32_t, Reading reading, Duration) {
    std::vector<HistoryPoint> points;
    if (reading == Reading::CpuMemoryFree) points.push_back({snapshot.at, 1e9});
    if (reading == Reading::CpuMemoryAvailable) points.push_back({snapshot.at, 192e9});
    return points;
  });
  EXPECT_EQ(trends.front().memory.back(), 0.25);
}

TEST(Trends, SayWhatHeldTheClockByTheDriversCounter) {
  Past past;
  past.add(Reading::GpuThrottleSwPowerCap, 60, 100);
  past.add(Reading::GpuThrottleSwPowerCap, 0, 137.2);  // 37.2 of 60 s
  EXPECT_EQ(past.trend().why_slow, "power cap 62 % of the last minute");
}

TEST(Trends, SayWhatHeldTheClockByTheReasonsSeenWithoutACounter) {
  Past past;
  for (int ago = 60; ago >= 0; ago -= 20) {
    past.add(Reading::GpuClockEvents, ago, ago >= 40 ? 0x4 : 0x0);  // in two of four
  }
  EXPECT_EQ(past.trend().why_slow, "power cap 50 % of the last minute");
}

TEST(Trends, ConcernThemselvesWithNothingShort) {
  Past past;
  past.add(Reading::GpuThrottleSwPowerCap, 60, 0);
  past.add(Reading::GpuThrottleSwPowerCap, 0, 2.9);  // below a twentieth of the minute
  EXPECT_EQ(past.trend().why_slow, "");
}

}  // namespace
}  // namespace muster

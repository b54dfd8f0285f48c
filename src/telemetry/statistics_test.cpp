#include "telemetry/statistics.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

DeviceSample gpu_sample(double utilization, double memory_bytes, double watts) {
  DeviceSample sample;
  sample.readings.set(Reading::GpuUtilization, utilization);
  sample.readings.set(Reading::GpuMemoryUsed, memory_bytes);
  sample.readings.set(Reading::GpuPowerInstant, watts);
  return sample;
}

TEST(Statistics, NothingHasNone) { EXPECT_FALSE(statistics_of({})); }

TEST(Statistics, TheNearestRankIsAValueThatWasThere) {
  std::vector<double> values;
  for (int i = 20; i >= 1; --i) values.push_back(i);
  const auto twenty = statistics_of(values);
  EXPECT_EQ(twenty->count, 20U);
  EXPECT_EQ(twenty->min, 1);
  EXPECT_EQ(twenty->max, 20);
  EXPECT_EQ(twenty->mean, 10.5);
  EXPECT_EQ(twenty->p95, 19);  // 19 of 20 are not above it
  values.push_back(21);
  EXPECT_EQ(statistics_of(values)->p95, 20);  // 0.95 * 21 = 19.95, the twentieth
  EXPECT_EQ(statistics_of({7})->p95, 7);
}

TEST(Statistics, ALongLifeTakesBoundedMemory) {
  RunningStatistics running;
  for (int i = 0; i <= 200'000; ++i) running.add(i);
  const auto all = running.statistics();
  EXPECT_EQ(all->count, 200'001U);
  EXPECT_EQ(all->min, 0);
  EXPECT_EQ(all->max, 200'000);
  EXPECT_DOUBLE_EQ(all->mean, 100'000);
  // Beyond twice 65,536 values every fourth is kept: 50,001 of them, of which the 47,501st is this.
  EXPECT_EQ(all->p95, 190'000);
  EXPECT_FALSE(RunningStatistics{}.statistics());
}

TEST(Statistics, TotalsAreSumsOfMeansAndTheHighestOfAny) {
  constexpr double kMb = 1048576;
  DeviceUse first;
  first.add(gpu_sample(0.2, 1000 * kMb, 100));
  first.add(gpu_sample(0.6, 3000 * kMb, 300));
  DeviceUse second;
  second.add(gpu_sample(0.9, 500 * kMb, 50));
  const auto total = total_use({&first, &second});
  EXPECT_DOUBLE_EQ(*total.total_avg_utilization, 40 + 90);
  EXPECT_DOUBLE_EQ(*total.total_max_utilization, 90);
  EXPECT_DOUBLE_EQ(*total.total_avg_memory_mb, 2000 + 500);
  EXPECT_DOUBLE_EQ(*total.total_max_memory_mb, 3000);
  EXPECT_DOUBLE_EQ(*total.total_avg_power_w, 200 + 50);
  EXPECT_DOUBLE_EQ(*total.total_max_power_w, 300);
  EXPECT_EQ(total.total_samples, 3U);
  EXPECT_DOUBLE_EQ(*total.avg_utilization_per_gpu, 65);
  EXPECT_DOUBLE_EQ(*total.avg_memory_per_gpu_mb, 1250);
  EXPECT_TRUE(total.any_gpu_active);
}

TEST(Statistics, AGpuIsActiveAboveFivePercent) {
  DeviceUse idle;
  idle.add(gpu_sample(0.05, 0, 0));
  EXPECT_FALSE(total_use({&idle}).any_gpu_active);
  idle.add(gpu_sample(0.06, 0, 0));
  EXPECT_TRUE(total_use({&idle}).any_gpu_active);
}

TEST(Statistics, NoGpusHaveNoTotals) {
  const auto total = total_use({});
  EXPECT_FALSE(total.total_avg_utilization);
  EXPECT_FALSE(total.avg_memory_per_gpu_mb);
  EXPECT_FALSE(total.any_gpu_active);
}

TEST(Statistics, SharesCountTheSamplesInWhichAnEventHeld) {
  const double both =
      static_cast<double>(ClockEvent::SwPowerCap) + static_cast<double>(ClockEvent::SwThermal);
  const double one = static_cast<double>(ClockEvent::SwPowerCap);
  const auto shares = clock_event_shares({{{}, both}, {{}, one}, {{}, one}, {{}, 0}});
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_EQ(shares[0], std::pair(ClockEvent::SwPowerCap, 0.75));
  EXPECT_EQ(shares[1], std::pair(ClockEvent::SwThermal, 0.25));
}

}  // namespace
}  // namespace muster

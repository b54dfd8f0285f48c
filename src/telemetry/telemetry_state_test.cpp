#include "telemetry/telemetry_state.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::array<Duration, kTierCount> kPeriods{milliseconds(100), seconds(1), seconds(10)};
constexpr double kUnix = 1000;

TimePoint at_ms(std::int64_t ms) { return TimePoint(milliseconds(ms)); }

WatchedMachine one_gpu_and_cpu() {
  WatchedMachine machine;
  machine.devices.resize(2);
  machine.devices[0].device.kind = DeviceKind::Cuda;
  machine.devices[1].device.kind = DeviceKind::Cpu;
  return machine;
}

TelemetryState state() { return {one_gpu_and_cpu(), {kPeriods, Duration::zero()}}; }

DeviceSample visit(std::int64_t ms, const char* tiers) {
  DeviceSample sample;
  sample.at = at_ms(ms);
  sample.tiers = TierSet(std::string(tiers));
  if (sample.tiers.test(0)) sample.readings.set(Reading::GpuPowerInstant, 100);
  if (sample.tiers.test(1)) sample.readings.set(Reading::GpuTemperatureCore, 40);
  if (sample.tiers.test(2)) sample.readings.set(Reading::GpuPowerLimitEnforced, 700);
  return sample;
}

std::optional<CallInProgress> in_no_call(std::uint32_t /*device*/) { return std::nullopt; }

DeviceStatus gpu_at(const TelemetryState& state, std::int64_t ms) {
  return state.snapshot(at_ms(ms), kUnix, in_no_call).devices[0];
}

TEST(TelemetryState, ADeviceThatWasNeverVisitedIsDownAndSaysSo) {
  const auto gpu = gpu_at(state(), 0);
  EXPECT_FALSE(gpu.is_up);
  EXPECT_EQ(gpu.down_reason, "no answer yet");
  EXPECT_EQ(gpu.last_success_unix_seconds, std::nullopt);
}

TEST(TelemetryState, ReadingsGoTwoIntervalsAfterTheLast) {
  auto now = state();
  now.add(visit(0, "111"));
  EXPECT_EQ(gpu_at(now, 200).readings.count(), 3U);
  const auto later = gpu_at(now, 201).readings;
  EXPECT_FALSE(later.has(Reading::GpuPowerInstant));
  EXPECT_TRUE(later.has(Reading::GpuTemperatureCore));
  for (int ms = 100; ms <= 2100; ms += 100) now.add(visit(ms, "001"));
  const auto last = gpu_at(now, 2100).readings;
  EXPECT_TRUE(last.has(Reading::GpuPowerInstant));
  EXPECT_FALSE(last.has(Reading::GpuTemperatureCore));
  EXPECT_TRUE(last.has(Reading::GpuPowerLimitEnforced));
}

TEST(TelemetryState, AReadingThatFailsGoesAtOnceAndIsCounted) {
  auto now = state();
  now.add(visit(0, "001"));
  auto failed = visit(100, "001");
  failed.readings.clear(Reading::GpuPowerInstant);
  failed.readings.set(Reading::GpuUtilization, 1);
  failed.errors.push_back({Reading::GpuPowerInstant, 999});
  now.add(failed);
  const auto gpu = gpu_at(now, 100);
  EXPECT_TRUE(gpu.is_up);
  EXPECT_FALSE(gpu.readings.has(Reading::GpuPowerInstant));
  EXPECT_TRUE(gpu.readings.has(Reading::GpuUtilization));
  EXPECT_EQ(gpu.error_counts, (std::map<std::int32_t, std::uint64_t>{{999, 1}}));
}

TEST(TelemetryState, AnEnergyCounterOfTheMediumTierStaysUntilItsNextVisit) {
  auto now = state();
  auto sample = visit(0, "011");
  sample.readings.set(Reading::GpuEnergy, 7);
  now.add(sample);
  for (int ms = 100; ms < 1000; ms += 100) now.add(visit(ms, "001"));
  EXPECT_EQ(gpu_at(now, 900).readings.get(Reading::GpuEnergy), 7);
  now.add(visit(1000, "011"));
  EXPECT_FALSE(gpu_at(now, 1000).readings.has(Reading::GpuEnergy)) << "it could not be read";
}

TEST(TelemetryState, SilenceOfOneAndAHalfSecondsIsDown) {
  auto now = state();
  now.sampler_started(1);
  now.add(visit(0, "111"));
  EXPECT_TRUE(gpu_at(now, 1500).is_up);
  const auto gpu = gpu_at(now, 2600);
  EXPECT_FALSE(gpu.is_up);
  EXPECT_EQ(gpu.down_reason, "no answer for 2 s");
  EXPECT_EQ(gpu.readings.count(), 0U);  // the slow tier's too: nothing stale is shown
  EXPECT_EQ(gpu.last_success_unix_seconds, kUnix - 2.6);
  now.sampler_died();
  EXPECT_EQ(gpu_at(now, 2600).down_reason, "its sampler is being started again");
}

TEST(TelemetryState, ACallThatTakesASecondHangs) {
  auto now = state();
  now.add(visit(0, "111"));
  const auto in_call = [](std::uint32_t device) -> std::optional<CallInProgress> {
    if (device != 0) return std::nullopt;
    return CallInProgress{"nvmlDeviceGetFieldValues", at_ms(100)};
  };
  EXPECT_TRUE(now.snapshot(at_ms(1099), kUnix, in_call).devices[0].is_up);
  const auto gpu = now.snapshot(at_ms(3100), kUnix, in_call).devices[0];
  EXPECT_FALSE(gpu.is_up);
  EXPECT_EQ(gpu.down_reason, "hung in nvmlDeviceGetFieldValues for 3 s");
}

TEST(TelemetryState, ALostDeviceIsDownAtOnceAndUpWhenItAnswers) {
  auto now = state();
  now.add(visit(0, "111"));
  auto lost = visit(100, "001");
  lost.readings = {};
  lost.lost_reason = "GPU is lost (NVML 15)";
  now.add(lost);
  EXPECT_EQ(gpu_at(now, 150).down_reason, "GPU is lost (NVML 15)");
  EXPECT_EQ(gpu_at(now, 150).lost_reason, "GPU is lost (NVML 15)");
  EXPECT_EQ(gpu_at(now, 3000).lost_reason, "GPU is lost (NVML 15)") << "it has said nothing since";
  now.add(visit(3100, "011"));
  EXPECT_TRUE(gpu_at(now, 3150).is_up);
  EXPECT_EQ(gpu_at(now, 3150).lost_reason, "");
}

TEST(TelemetryState, ADeviceThatIsLeftOutOrNotListedSaysSo) {
  auto now = state();
  now.add(visit(0, "111"));
  now.set_listed(0, false);
  EXPECT_EQ(gpu_at(now, 0).down_reason, "the driver does not list it any more");
  now.leave_out(0, "left out: it was twice");
  EXPECT_EQ(gpu_at(now, 0).down_reason, "left out: it was twice");
}

TEST(TelemetryState, XidsAreCountedByCodeAndSurviveASampler) {
  auto now = state();
  for (const std::uint64_t code : {31U, 79U, 79U, 13U}) {
    now.add(DeviceEvent{0, DeviceEventKind::Xid, code, at_ms(0)}, kUnix);
  }
  now.sampler_died();
  const auto xids = gpu_at(now, 0).xids;
  EXPECT_EQ(xids.at(31).count, 1U);
  EXPECT_EQ(xids.at(79).count, 2U);
  EXPECT_EQ(xids.at(13).count, 1U);
  EXPECT_EQ(xids.at(79).last_unix_seconds, kUnix);
}

TEST(TelemetryState, CostsOfTheSamplersBeforeAreAdded) {
  auto now = state();
  const auto costs = [](std::uint64_t calls, double cpu) {
    SamplerCosts made;
    made.calls.push_back({"f", calls, 0.5, {{3, 1}}});
    made.ticks[0].missed = calls;
    made.cpu_seconds = cpu;
    made.rss_bytes = calls;
    return made;
  };
  now.sampler_started(11);
  now.set_costs(costs(10, 1));
  now.sampler_died();
  now.sampler_started(12);
  now.set_costs(costs(2, 0.25));
  const auto status = now.snapshot(at_ms(0), kUnix, in_no_call).collector;
  EXPECT_EQ(status.restarts, 1U);
  EXPECT_EQ(status.sampler_pid, 12U);
  ASSERT_EQ(status.calls.size(), 1U);
  EXPECT_EQ(status.calls[0].calls, 12U);
  EXPECT_EQ(status.calls[0].seconds, 1.0);
  EXPECT_EQ(status.calls[0].errors.at(3), 2U);
  EXPECT_EQ(status.ticks[0].missed, 12U);
  EXPECT_EQ(status.cpu_seconds, 1.25);
  EXPECT_EQ(status.rss_bytes, 2U);  // memory is that of now
}

TEST(TelemetryState, SlicesAndCpusAreNoGpusToExpect) {
  auto machine = one_gpu_and_cpu();
  machine.devices.push_back(machine.devices[0]);
  machine.devices[2].parent = "GPU-0";
  const TelemetryState now(machine, {kPeriods, Duration::zero()});
  EXPECT_EQ(now.snapshot(at_ms(0), kUnix, in_no_call).expected_gpus, 1U);
}

}  // namespace
}  // namespace muster

#include "wire/telemetry_messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace muster {
namespace {

using std::chrono::milliseconds;

DeviceSample one_sample() {
  DeviceSample sample;
  sample.device = 3;
  sample.at = TimePoint(milliseconds(1500));
  sample.tiers = TierSet(0b101);
  sample.readings.set(Reading::GpuPowerInstant, 626.25);
  sample.readings.set(Reading::GpuEnergy, 1e9 + 0.125);
  sample.errors.push_back({Reading::GpuUtilization, 999});
  sample.core_loads = {0.5F, 1.0F};
  sample.processes = {{4711, "python\n\xff", 1ULL << 40, GpuProcessKind::Mps},
                      {0, "", std::nullopt, GpuProcessKind::Compute}};
  sample.call_count = 3;
  sample.call_seconds = 0.00025;
  sample.lost_reason = "GPU is lost (NVML 15)";
  return sample;
}

TEST(TelemetryMessages, ASampleComesBackWithEveryField) {
  const std::vector<DeviceSample> sent{one_sample(), DeviceSample{}};
  const auto back = decode_samples(encode(std::span(sent)));
  ASSERT_TRUE(back) << back.error().message;
  ASSERT_EQ(back->size(), 2U);
  const auto& sample = back->front();
  EXPECT_EQ(sample.device, 3U);
  EXPECT_EQ(sample.at, TimePoint(milliseconds(1500)));
  EXPECT_EQ(sample.tiers, TierSet(0b101));
  EXPECT_EQ(sample.readings.count(), 2U);
  EXPECT_EQ(sample.readings.get(Reading::GpuPowerInstant), 626.25);
  EXPECT_EQ(sample.readings.get(Reading::GpuEnergy), 1e9 + 0.125);
  ASSERT_EQ(sample.errors.size(), 1U);
  EXPECT_EQ(sample.errors[0].reading, Reading::GpuUtilization);
  EXPECT_EQ(sample.errors[0].code, 999);
  EXPECT_EQ(sample.core_loads, (std::vector<float>{0.5F, 1.0F}));
  ASSERT_TRUE(sample.processes);
  ASSERT_EQ(sample.processes->size(), 2U);
  EXPECT_EQ(sample.processes->at(0).command, "python\n\xff");
  EXPECT_EQ(sample.processes->at(0).memory_bytes, 1ULL << 40);
  EXPECT_EQ(sample.processes->at(0).kind, GpuProcessKind::Mps);
  EXPECT_EQ(sample.processes->at(1).memory_bytes, std::nullopt);
  EXPECT_EQ(sample.call_count, 3U);
  EXPECT_EQ(sample.call_seconds, 0.00025);
  EXPECT_EQ(sample.lost_reason, "GPU is lost (NVML 15)");
  EXPECT_FALSE(back->at(1).processes);
  EXPECT_FALSE(back->at(1).lost_reason);
}

// The payload up to the number: a count of 1, then device 4, time 8, tiers 1 and count of readings.
constexpr std::size_t kFirstReading = 4 + 4 + 8 + 1 + 1;

TEST(TelemetryMessages, ANumberThatIsNoneIsRefused) {
  auto sample = one_sample();
  sample.readings.set(Reading::GpuPowerInstant, std::numeric_limits<double>::quiet_NaN());
  const auto back = decode_samples(encode(std::span(&sample, 1)));
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().kind, ErrorKind::Corrupt);
  EXPECT_EQ(back.error().message, "message has a number that is not finite");
}

TEST(TelemetryMessages, AReadingTwiceOrNotKnownIsRefused) {
  const auto sample = one_sample();
  auto bytes = encode(std::span(&sample, 1));
  constexpr std::size_t kSecond = kFirstReading + 1 + 8;
  bytes[kSecond] = bytes[kFirstReading];
  auto back = decode_samples(bytes);
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().message,
            "message has a reading twice or out of order: power_instant_watts");
  bytes[kSecond] = static_cast<std::byte>(kReadingCount);
  back = decode_samples(bytes);
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().message,
            "message has an unknown reading: " + std::to_string(kReadingCount));
}

TEST(TelemetryMessages, EveryCutOfAPayloadIsRefused) {
  const auto sample = one_sample();
  const auto bytes = encode(std::span(&sample, 1));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_samples(std::span(bytes).first(size))) << size;
  }
}

TEST(TelemetryMessages, AMachineComesBackWithEveryField) {
  WatchedMachine machine;
  machine.name = "sim:2xH100-80G";
  DeviceIdentity gpu;
  gpu.device.kind = DeviceKind::Cuda;
  gpu.device.index = 1;
  gpu.device.model = "NVIDIA H200";
  gpu.device.uuid = "GPU-1";
  gpu.device.compute_capability = 90;
  gpu.device.cpus = {0, 2};
  gpu.driver_version = "580.95.05";
  gpu.parent = "GPU-0";
  gpu.mig_profile = "1g.18gb";
  gpu.cuda_ordinal = 0;
  gpu.gpu_instance = 7;
  gpu.is_ecc_on = false;
  gpu.is_mig_on = true;
  gpu.has_mps_server = true;
  gpu.is_barred = true;
  machine.devices = {gpu, DeviceIdentity{}};
  machine.links = {
      2,
      {{LinkKind::Self, 0}, {LinkKind::NvLink, 18}, {LinkKind::NvLink, 18}, {LinkKind::Self, 0}}};
  machine.gpu_absent_reason = "none";
  const auto back = decode_machine(encode(machine));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->name, "sim:2xH100-80G");
  ASSERT_EQ(back->devices.size(), 2U);
  const auto& first = back->devices[0];
  EXPECT_EQ(first.device.kind, DeviceKind::Cuda);
  EXPECT_EQ(first.device.index, 1U);
  EXPECT_EQ(first.device.model, "NVIDIA H200");
  EXPECT_EQ(first.device.uuid, "GPU-1");
  EXPECT_EQ(first.device.compute_capability, 90U);
  EXPECT_EQ(first.device.cpus, (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(first.driver_version, "580.95.05");
  EXPECT_EQ(first.parent, "GPU-0");
  EXPECT_EQ(first.mig_profile, "1g.18gb");
  EXPECT_EQ(first.cuda_ordinal, 0U);
  EXPECT_EQ(first.gpu_instance, 7U);
  EXPECT_EQ(first.is_ecc_on, false);
  EXPECT_EQ(first.is_mig_on, true);
  EXPECT_EQ(first.is_persistent, std::nullopt);
  EXPECT_TRUE(first.has_mps_server);
  EXPECT_TRUE(first.is_barred);
  EXPECT_EQ(back->links.labels[1].kind, LinkKind::NvLink);
  EXPECT_EQ(back->links.labels[1].width, 18U);
  EXPECT_EQ(back->gpu_absent_reason, "none");
}

TEST(TelemetryMessages, LinksThatDoNotFitTheDevicesAreRefused) {
  WatchedMachine machine;
  machine.links = {1, {{LinkKind::Self, 0}}};
  const auto back = decode_machine(encode(machine));
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().message, "links do not fit the devices: 1 of 0, 1 labels");
}

TEST(TelemetryMessages, WhatTheCollectorAsksComesBack) {
  Watch watch;
  watch.nvml_libraries = {"/opt/libnvidia-ml.so.1"};
  watch.root = "/host";
  watch.simulated = "sim:1xT4";
  watch.periods = {milliseconds(100), milliseconds(1000), milliseconds(10000)};
  watch.left_out = {"GPU-3"};
  const auto back = decode_watch(encode(watch));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->nvml_libraries, watch.nvml_libraries);
  EXPECT_EQ(back->root, "/host");
  EXPECT_EQ(back->simulated, "sim:1xT4");
  EXPECT_EQ(back->periods, watch.periods);
  EXPECT_EQ(back->left_out, watch.left_out);
  EXPECT_EQ(decode_find_edges(encode(FindEdges{milliseconds(250)}))->limit, milliseconds(250));
  EXPECT_TRUE(decode_viewer(encode(Viewer{true}))->is_there);

  watch.periods[1] = Duration::zero();
  EXPECT_FALSE(decode_watch(encode(watch)));
}

TEST(TelemetryMessages, EventsEdgesAndCostsComeBack) {
  const std::vector<DeviceEvent> events{{2, DeviceEventKind::Xid, 79, TimePoint(milliseconds(5))}};
  const auto events_back = decode_events(encode(std::span(events)));
  ASSERT_TRUE(events_back);
  EXPECT_EQ(events_back->at(0).device, 2U);
  EXPECT_EQ(events_back->at(0).code, 79U);
  EXPECT_EQ(events_back->at(0).at, TimePoint(milliseconds(5)));

  const std::vector<EdgeFound> edges{{0, TimePoint(milliseconds(7)), 1.5, Duration(600), ""},
                                     {1, std::nullopt, 0, {}, "stood still"}};
  const auto edges_back = decode_edges(encode(std::span(edges)));
  ASSERT_TRUE(edges_back);
  EXPECT_EQ(edges_back->at(0).at, TimePoint(milliseconds(7)));
  EXPECT_EQ(edges_back->at(0).joules, 1.5);
  EXPECT_EQ(edges_back->at(0).within, Duration(600));
  EXPECT_EQ(edges_back->at(1).at, std::nullopt);
  EXPECT_EQ(edges_back->at(1).missing_reason, "stood still");

  SamplerCosts costs;
  costs.ticks[1].counts[10] = 4;
  costs.ticks[1].seconds = 0.5;
  costs.ticks[2].missed = 9;
  costs.calls.push_back({"nvmlDeviceGetFieldValues", 12, 0.25, {{-1, 2}, {15, 1}}});
  costs.cpu_seconds = 0.75;
  costs.rss_bytes = 1 << 20;
  const auto back = decode_costs(encode(costs));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->ticks[1].counts[10], 4U);
  EXPECT_EQ(back->ticks[1].seconds, 0.5);
  EXPECT_EQ(back->ticks[2].missed, 9U);
  ASSERT_EQ(back->calls.size(), 1U);
  EXPECT_EQ(back->calls[0].function, "nvmlDeviceGetFieldValues");
  EXPECT_EQ(back->calls[0].calls, 12U);
  EXPECT_EQ(back->calls[0].errors, (std::map<std::int32_t, std::uint64_t>{{-1, 2}, {15, 1}}));
  EXPECT_EQ(back->cpu_seconds, 0.75);
  EXPECT_EQ(back->rss_bytes, 1U << 20);
}

}  // namespace
}  // namespace muster

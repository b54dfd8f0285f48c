#include "telemetry/recording.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster {
namespace {

TelemetrySnapshot one_gpu() {
  TelemetrySnapshot snapshot;
  snapshot.unix_seconds = 1'700'000'000.25;
  snapshot.machine = "here";
  snapshot.expected_gpus = 1;
  auto& gpu = snapshot.devices.emplace_back();
  gpu.identity.device.kind = DeviceKind::Cuda;
  gpu.identity.device.index = 0;
  gpu.identity.device.model = "NVIDIA H200";
  gpu.identity.device.uuid = "GPU-1";
  gpu.identity.driver_version = "580.95.05";
  gpu.identity.is_ecc_on = true;
  gpu.name = "cuda:0";
  gpu.is_up = true;
  gpu.last_success_unix_seconds = 1'700'000'000.125;
  gpu.readings.set(Reading::GpuPowerInstant, 626.25);
  gpu.readings.set(Reading::GpuEnergy, 12345678.901);
  gpu.xids[79] = {2, 1'699'999'999};
  gpu.error_counts[-1] = 3;
  gpu.processes = {{4711, "a \"name\"\n", 1024, GpuProcessKind::Mps}};
  gpu.health = {{"xid", HealthState::Unfit, "the driver reported XID 79 (2 times)"}};
  snapshot.links = {1, {{LinkKind::Self, 0}}};
  snapshot.collector.restarts = 1;
  snapshot.collector.ticks[0].missed = 4;
  return snapshot;
}

std::string error_of(std::string_view line) {
  const auto read = read_recording_line(line);
  EXPECT_FALSE(read);
  return read ? "" : read.error().message;
}

TEST(Recording, IsOneLineWithTheNamesOfTheTable) {
  TelemetrySnapshot snapshot;
  snapshot.unix_seconds = 2.5;
  auto& cpu = snapshot.devices.emplace_back();
  cpu.name = "cpu:0";
  cpu.is_up = true;
  cpu.readings.set(Reading::CpuUtilization, 0.5);
  cpu.readings.set(Reading::HostMemorySize, 1024);
  const std::vector<Reading> only{Reading::CpuUtilization};
  EXPECT_EQ(recording_line(snapshot, only),
            R"({"time":2.5,"machine":"here","expected_gpus":0,"devices":[{"name":"cpu:0",)"
            R"("kind":"cpu","index":0,"model":"","up":true,)"
            R"("readings":{"cpu_utilization_ratio":0.5},"health":[]}],"links":[],)"
            R"("collector":{"restarts":0,"cpu_seconds":0.0,"rss_bytes":0,)"
            R"("missed_visits":[0,0,0]}})"
            "\n");
}

TEST(Recording, EveryLineBeginsWithTheKeysItIsKnownBy) {
  const auto line = nlohmann::ordered_json::parse(recording_line({}, {}));
  std::vector<std::string> begin;
  for (const auto& [key, value] : line.items()) begin.push_back(key);
  begin.resize(recording_keys().size());
  EXPECT_EQ(begin, recording_keys());
}

TEST(Recording, ASnapshotComesBack) {
  const auto sent = one_gpu();
  const auto back = read_recording_line(recording_line(sent, {}));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->unix_seconds, sent.unix_seconds);
  EXPECT_EQ(back->at, TimePoint(std::chrono::milliseconds(1'700'000'000'250)));
  EXPECT_EQ(back->expected_gpus, 1U);
  ASSERT_EQ(back->devices.size(), 1U);
  const auto& gpu = back->devices[0];
  EXPECT_EQ(gpu.identity.device.kind, DeviceKind::Cuda);
  EXPECT_EQ(gpu.identity.device.uuid, "GPU-1");
  EXPECT_EQ(gpu.identity.device.pci_address, std::nullopt);
  EXPECT_EQ(gpu.identity.driver_version, "580.95.05");
  EXPECT_EQ(gpu.identity.is_ecc_on, true);
  EXPECT_EQ(gpu.identity.is_mig_on, std::nullopt);
  EXPECT_EQ(gpu.last_success_unix_seconds, 1'700'000'000.125);
  EXPECT_EQ(gpu.readings.count(), 2U);
  EXPECT_EQ(gpu.readings.get(Reading::GpuEnergy), 12345678.901);
  EXPECT_EQ(gpu.xids.at(79).count, 2U);
  EXPECT_EQ(gpu.error_counts.at(-1), 3U);
  ASSERT_EQ(gpu.processes.size(), 1U);
  EXPECT_EQ(gpu.processes[0].command, "a \"name\"\n");
  EXPECT_EQ(gpu.processes[0].kind, GpuProcessKind::Mps);
  EXPECT_EQ(gpu.health[0].state, HealthState::Unfit);
  EXPECT_EQ(back->links.device_count, 1U);
  EXPECT_EQ(back->collector.restarts, 1U);
  EXPECT_EQ(back->collector.ticks[0].missed, 4U);
  // And is written again as it was.
  EXPECT_EQ(recording_line(*back, {}), recording_line(sent, {}));
}

TEST(Recording, BytesThatAreNoTextDoNotBreakTheLine) {
  auto snapshot = one_gpu();
  snapshot.devices[0].processes[0].command = "\xff\xfe";
  const auto line = recording_line(snapshot, {});
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_TRUE(read_recording_line(line));
}

TEST(Recording, WhatIsWrongIsNamed) {
  EXPECT_EQ(error_of("{\"time\":1"), "the line is no JSON object");
  EXPECT_EQ(error_of("[]"), "the line is no JSON object");
  EXPECT_EQ(error_of("{}"), "time is missing");
  EXPECT_EQ(error_of(R"({"time":"now"})"), "time is no number");
  EXPECT_EQ(error_of(R"({"time":1e300})"), "time is no time");
  EXPECT_EQ(error_of(R"({"time":1,"machine":"here","expected_gpus":-1})"),
            "expected_gpus is no whole number of its range");
  const std::string head = R"({"time":1,"machine":"here","expected_gpus":0,)";
  const std::string gpu = head + R"("devices":[{"name":"cuda:0","kind":"cuda","index":0,)";
  EXPECT_EQ(error_of(head + R"("devices":[{"name":"x","kind":"tpu","index":0,"model":""}]})"),
            "devices[0].kind is not known: tpu");
  EXPECT_EQ(error_of(gpu + R"("model":"","up":true,"readings":{"watts":1}}]})"),
            "devices[0].readings has no reading of the name watts");
  EXPECT_EQ(error_of(gpu + R"("model":"","up":true,"xids":{"79x":{}}}]})"),
            "devices[0].79x is no code");
  EXPECT_EQ(error_of(head + R"("links":["X","NV4"]})"), "links is no square of the devices: 2");
}

}  // namespace
}  // namespace muster

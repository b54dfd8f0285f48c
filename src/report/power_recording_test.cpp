#include "report/power_recording.h"

#include <gtest/gtest.h>

#include <cmath>

#include "report/report_fixture.h"
#include "telemetry/recording.h"

namespace muster {
namespace {

constexpr double kStart = 1'700'000'000;

DeviceStatus device(DeviceKind kind, const std::string& name, double at) {
  DeviceStatus status;
  status.identity.device.kind = kind;
  status.identity.device.model = "model";
  status.name = name;
  status.is_up = true;
  status.last_success_unix_seconds = at;
  return status;
}

std::string line_at(double at, std::vector<DeviceStatus> devices) {
  TelemetrySnapshot snapshot;
  snapshot.unix_seconds = at;
  snapshot.devices = std::move(devices);
  return recording_line(snapshot, {});
}

std::string gpu_line(double at, std::optional<double> watts) {
  auto gpu = device(DeviceKind::Cuda, "cuda:0", at);
  if (watts) gpu.readings.set(Reading::GpuPowerInstant, *watts);
  return line_at(at, {gpu});
}

std::string cpu_line(double at, double looked_at, double joules) {
  auto cpu = device(DeviceKind::Cpu, "cpu:0", looked_at);
  cpu.readings.set(Reading::CpuEnergyPackage, joules);
  return line_at(at, {cpu});
}

PowerRecording read(const std::string& text) {
  const auto recording = read_power_recording(text, "x.jsonl", "x");
  EXPECT_TRUE(recording) << recording.error().message;
  return recording ? *recording : PowerRecording{};
}

TEST(PowerRecording, HasAGapWhereADeviceToldNothing) {
  const auto recording = read(gpu_line(kStart, 300) + gpu_line(kStart + 1, std::nullopt) +
                              gpu_line(kStart + 2, 310) + "{\"torn");
  EXPECT_EQ(recording.begin, kStart);
  EXPECT_EQ(recording.end, kStart + 2);
  ASSERT_EQ(recording.lines.size(), 1U);
  const auto& line = recording.lines[0];
  EXPECT_EQ(line.device, "cuda:0");
  EXPECT_FALSE(line.is_of_counter);
  ASSERT_EQ(line.points.size(), 3U);
  EXPECT_EQ(line.points[0].y, 300);
  EXPECT_TRUE(std::isnan(line.points[1].y));
  EXPECT_EQ(line.points[2].y, 310);
}

// 50 J in one second, then 120 J in two; the look of the second line is seen twice and counts once.
TEST(PowerRecording, TakesTheDifferencesOfACpusCounter) {
  const auto recording =
      read(cpu_line(kStart, kStart, 1000) + cpu_line(kStart + 1, kStart + 1, 1050) +
           cpu_line(kStart + 2, kStart + 1, 1050) + cpu_line(kStart + 3, kStart + 3, 1170) +
           cpu_line(kStart + 4, kStart + 4, 5));
  ASSERT_EQ(recording.lines.size(), 1U);
  const auto& line = recording.lines[0];
  EXPECT_TRUE(line.is_of_counter);
  ASSERT_EQ(line.points.size(), 3U);
  EXPECT_EQ(line.points[0].y, 50);
  EXPECT_EQ(line.points[1].y, 60);
  EXPECT_TRUE(std::isnan(line.points[2].y)) << "the counter went back";
}

TEST(PowerRecording, LeavesDevicesOutThatToldNoPower) {
  EXPECT_TRUE(read(gpu_line(kStart, std::nullopt)).lines.empty());
}

TEST(PowerRecording, NamesTheLineAtFault) {
  const auto broken = read_power_recording(gpu_line(kStart, 1) + "{}x\n", "x.jsonl", "x");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().kind, ErrorKind::Corrupt);
  EXPECT_TRUE(broken.error().message.starts_with("x.jsonl:2: this is no recording of muster: "))
      << broken.error().message;
  EXPECT_EQ(read_power_recording("", "x.jsonl", "x").error().message,
            "x.jsonl: the recording has no whole line");
}

// The trials of the fixture begin at kStart; 500 answers are counted for 5 s.
TEST(PowerRecording, BelongsToItsPointOrToWhoRanMeanwhile) {
  auto point = made_point("0123456789abcdef", "1", "bf16", 1);
  const std::vector<ReportResult> all{point, made_result("a.json", {made_trial(500, 0.02)})};
  const PowerRecording of_point{
      .name = "x", .point = "0123456789abcdef", .begin = 0, .end = 1, .lines = {}};
  EXPECT_TRUE(is_recording_of(of_point, all[0], all));
  EXPECT_FALSE(is_recording_of(of_point, all[1], all));
  PowerRecording other{.name = "x", .point = "x", .begin = kStart + 4, .end = kStart + 9};
  EXPECT_TRUE(is_recording_of(other, all[1], all));
  other.begin = kStart + 6;
  EXPECT_FALSE(is_recording_of(other, all[1], all));
}

}  // namespace
}  // namespace muster

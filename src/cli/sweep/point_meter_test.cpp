#include "cli/sweep/point_meter.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

#include "base/full_disk_fixture.h"

namespace muster {
namespace {

constexpr pid_t kOwn = 41;

DeviceStatus device_with(std::vector<GpuProcess> processes) {
  DeviceStatus device;
  device.processes = std::move(processes);
  return device;
}

TEST(ExclusiveUse, IsToldWhereOnlyOwnProcessesAreSeen) {
  const auto alone = device_with({{.pid = kOwn}, {.pid = 7, .kind = GpuProcessKind::Mps}});
  EXPECT_EQ(exclusive_use({alone}, {40, kOwn}), true);
  EXPECT_EQ(exclusive_use({alone, alone}, {kOwn}), true);
  const auto shared = device_with({{.pid = kOwn}, {.pid = 99}});
  EXPECT_EQ(exclusive_use({alone, shared}, {kOwn}), false);
  EXPECT_EQ(exclusive_use({device_with({{.pid = 99}}), device_with({})}, {kOwn}), false)
      << "one is enough";
}

// A sampler that finds the edges of the counter of its one GPU, but for the first time.
class LateCollector final : public Collector {
 public:
  LateCollector() { machine_.devices.push_back({.device = {.kind = DeviceKind::Cuda}}); }

  const WatchedMachine& machine() const override { return machine_; }
  TelemetrySnapshot snapshot() const override {
    TelemetrySnapshot snapshot;
    snapshot.devices.push_back({.identity = machine_.devices.front(), .name = "cuda:0"});
    return snapshot;
  }
  std::vector<HistoryPoint> history(std::uint32_t, Reading, Duration) const override { return {}; }
  void subscribe(std::function<void(const DeviceSample&)>) override {}
  Result<std::vector<EnergyEdge>> find_edges(Duration) override {
    if (!std::exchange(is_found_, true)) {
      return Error{ErrorKind::DeadlineExceeded, "the sampler does not answer"};
    }
    return std::vector{EnergyEdge{.missing_reason = "it has no counter"}};
  }
  void set_viewer(bool) override {}

 private:
  WatchedMachine machine_;
  bool is_found_ = false;
};

// What the requests of a trial showed is not lost because nobody watched the devices.
TEST(PointMeter, GoesOnWhereATrialCannotBeWatched) {
  const SteadyClock clock;
  const auto meter =
      PointMeter::start(std::make_unique<LateCollector>(), clock, {.own_devices = {"cuda:0"}});
  ASSERT_TRUE(meter) << meter.error().message;
  for (int trial = 0; trial < 2; ++trial) {
    (*meter)->begin_trial();
    (*meter)->end_trial();
  }
  const auto telemetry = (*meter)->telemetry();
  ASSERT_EQ(telemetry.size(), 2U);
  EXPECT_TRUE(telemetry[0].devices.empty());
  EXPECT_EQ(telemetry[0].missing_reason, "the sampler does not answer");
  ASSERT_EQ(telemetry[1].devices.size(), 1U);
  EXPECT_TRUE(telemetry[1].devices.front().is_own);
  EXPECT_TRUE(telemetry[1].devices.front().energy.missing_reason.starts_with("it has no counter"));
  EXPECT_EQ(telemetry[1].missing_reason, "");
}

// The first line is written at once, and no byte of it fits.
TEST(PointMeter, ARecordingWithoutRoomCostsNoReading) {
  const auto file = std::filesystem::path(::testing::TempDir()) /
                    ("point_meter_" + std::to_string(::getpid()) + ".jsonl");
  const SteadyClock clock;
  {
    const FullDisk full(0);
    const auto meter = PointMeter::start(std::make_unique<LateCollector>(), clock,
                                         {.own_devices = {"cuda:0"}, .recording = file});
    ASSERT_TRUE(meter) << meter.error().message;
    for (int trial = 0; trial < 2; ++trial) {
      (*meter)->begin_trial();
      (*meter)->end_trial();
    }
    EXPECT_TRUE((*meter)->finish().starts_with(file.string() + ": ")) << (*meter)->finish();
    ASSERT_EQ((*meter)->telemetry().size(), 2U);
    EXPECT_EQ((*meter)->telemetry()[1].devices.size(), 1U);
  }
  std::filesystem::remove(file);
}

// A driver that shows no process, or none of this container, has not shown that nobody is there.
TEST(ExclusiveUse, IsNotToldWhereProcessesCannotBeSeen) {
  const auto alone = device_with({{.pid = kOwn}});
  EXPECT_EQ(exclusive_use({alone, device_with({})}, {kOwn}), std::nullopt);
  EXPECT_EQ(exclusive_use({device_with({{.pid = kOwn}, {.pid = 0}})}, {kOwn}), std::nullopt);
  EXPECT_EQ(exclusive_use({}, {kOwn}), std::nullopt);
}

}  // namespace
}  // namespace muster

// The watch with a real sampler process, and a driver for tests (stand_ins/fake_nvml).

#include "cli/device_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace muster {
namespace {

constexpr const char* kLibrary = MUSTER_BINARY_DIR "/lib/libfakenvml.so";
constexpr Duration kPatience = std::chrono::seconds(30);  // for a machine that is busy

// No limit of time is ever reached.
class StoppedClock final : public Clock {
 public:
  TimePoint now() const override { return {}; }
};

class DeviceWatchTest : public testing::Test {
 protected:
  ~DeviceWatchTest() override {
    ::unsetenv("FAKENVML_SCENARIO");
    std::filesystem::remove(scenario_);
  }

  void let_driver_be(const std::string& scenario) const {
    std::ofstream(scenario_) << scenario;
    ::setenv("FAKENVML_SCENARIO", scenario_.c_str(), 1);
  }

  static std::function<DeviceNews()> watch(DeviceKind kind, const Clock& clock) {
    ConfigSources sources;
    sources.flags = {{SettingId::NvmlPath, kLibrary, "--nvml-path"}};
    sources.working_folder = "/";
    Device device;
    device.kind = kind;
    return *watch_for_faults(*Config::load(sources), {device}, clock);
  }

  const std::filesystem::path scenario_ = std::filesystem::path(testing::TempDir()) /
                                          ("device_watch." + std::to_string(::getpid()) + ".json");
};

TEST_F(DeviceWatchTest, ARunOnCpusHasNone) {
  const SteadyClock clock;
  EXPECT_FALSE(watch(DeviceKind::Cpu, clock));
}

TEST_F(DeviceWatchTest, ARunWhoseGpusCannotBeWatchedSaysSoOnce) {
  let_driver_be(R"({"fake_nvml": 1})");  // a scenario without GPUs is none
  const SteadyClock clock;
  const auto news = watch(DeviceKind::Cuda, clock);
  const auto end = clock.now() + kPatience;
  auto first = news();
  for (; !first.notice && clock.now() < end; first = news()) std::this_thread::yield();
  ASSERT_TRUE(first.notice);
  EXPECT_TRUE(first.notice->starts_with("faults that the drivers of GPUs report are not seen: "))
      << *first.notice;
  EXPECT_NE(first.notice->find("gpus"), std::string::npos) << *first.notice;
  EXPECT_TRUE(first.faults.empty());
  EXPECT_FALSE(news().notice);
}

TEST_F(DeviceWatchTest, WhatADriverAsksForIsAFaultOfItsDevice) {
  let_driver_be(R"({"fake_nvml": 1,
                    "gpus": [{"model": "H100-80G", "values": {"recovery_action": 1}}]})");
  const SteadyClock clock;
  const auto news = watch(DeviceKind::Cuda, clock);
  const auto end = clock.now() + kPatience;
  auto first = news();
  for (; first.faults.empty() && clock.now() < end; first = news()) std::this_thread::yield();
  ASSERT_EQ(first.faults.size(), 1U);
  EXPECT_EQ(first.faults[0].device, 0U);
  EXPECT_EQ(first.faults[0].fault, "the driver asks to reset the GPU");
}

TEST_F(DeviceWatchTest, ARunThatEndsWaitsForNoDriver) {
  let_driver_be(R"({"fake_nvml": 1, "gpus": [{"model": "T4"}],
                    "hang": {"from": 0, "functions": ["nvmlInit_v2"]}})");
  const StoppedClock clock;
  EXPECT_TRUE(watch(DeviceKind::Cuda, clock)().faults.empty());
}

}  // namespace
}  // namespace muster

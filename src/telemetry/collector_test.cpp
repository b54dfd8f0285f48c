// The collector with a real sampler process.

#include "telemetry/collector.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kLibrary = MUSTER_BINARY_DIR "/lib/libfakenvml.so";
constexpr Duration kPatience = seconds(30);  // for a machine that is busy with other tests

/// Waits for samples, as a view does.
class SampleWait {
 public:
  explicit SampleWait(Collector& collector) {
    collector.subscribe([this](const DeviceSample& /*sample*/) {
      const std::lock_guard lock(mutex_);
      changed_.notify_all();
    });
  }

  /// Looks again with each sample, and from time to time for what gives none.
  template <typename IsSo>
  bool until(IsSo is_so) {
    const SteadyClock clock;
    const auto end = clock.now() + kPatience;
    std::unique_lock lock(mutex_);
    while (!is_so()) {
      if (clock.now() > end) return false;
      changed_.wait_for(lock, milliseconds(50));
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

CollectorOptions simulated(const std::string& machine) {
  CollectorOptions options;
  options.simulated = machine;
  return options;
}

/// A driver that does what `scenario` says. The sampler reads it again whenever it starts.
class FakeDriver {
 public:
  explicit FakeDriver(const std::string& scenario) {
    std::ofstream(file_) << scenario;
    ::setenv("FAKENVML_SCENARIO", file_.c_str(), 1);
  }
  ~FakeDriver() {
    ::unsetenv("FAKENVML_SCENARIO");
    std::filesystem::remove(file_);
  }
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  static CollectorOptions options() {
    CollectorOptions options;
    options.nvml_libraries = {kLibrary};
    return options;
  }

 private:
  const std::filesystem::path file_ = std::filesystem::path(testing::TempDir()) /
                                      ("collector." + std::to_string(::getpid()) + ".json");
};

TEST(Collector, TellsOfASimulatedMachineAtOnce) {
  const SteadyClock clock;
  auto options = simulated("sim:2xL4-24G");
  options.periods = {seconds(10), seconds(10), seconds(10)};  // a reading is fresh for two of them
  const auto collector = Collector::start(options, clock);
  ASSERT_TRUE(collector) << collector.error().message;
  const auto snapshot = (*collector)->snapshot();
  EXPECT_EQ(snapshot.machine, "sim:2xL4-24G");
  EXPECT_EQ(snapshot.expected_gpus, 2U);
  ASSERT_EQ(snapshot.devices.size(), 2U);
  for (const auto& device : snapshot.devices) {
    EXPECT_TRUE(device.is_up) << device.down_reason;
    EXPECT_TRUE(device.readings.has(Reading::GpuPowerInstant));
    EXPECT_TRUE(device.readings.has(Reading::GpuPowerLimitEnforced));
  }
}

TEST(Collector, ABrokenMachineIsRefusedInWords) {
  const SteadyClock clock;
  const auto unknown = Collector::start(simulated("sim:2xH900"), clock);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::NotFound);
  const auto several = Collector::start(simulated("sim:2x8xL4-24G"), clock);
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().kind, ErrorKind::InvalidArgument);
  const FakeDriver driver(R"({"fake_nvml": 1})");
  const auto scenario = Collector::start(FakeDriver::options(), clock);
  ASSERT_FALSE(scenario);
  EXPECT_EQ(scenario.error().kind, ErrorKind::InvalidArgument);
  EXPECT_NE(scenario.error().message.find("gpus"), std::string::npos) << scenario.error().message;
}

TEST(Collector, AProgramThatCannotBeStartedIsNamed) {
  const SteadyClock clock;
  auto options = simulated("sim:1xT4");
  options.program = "/nonexistent/muster-sampler";
  const auto missing = Collector::start(options, clock);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("/nonexistent/muster-sampler"), std::string::npos);
  options.program = "/bin/false";
  const auto ended = Collector::start(options, clock);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().kind, ErrorKind::Unavailable);
}

TEST(Collector, AStartThatIsCancelledWaitsForNoDriver) {
  const SteadyClock clock;
  const FakeDriver driver(R"({"fake_nvml": 1, "gpus": [{"model": "T4"}],
    "hang": {"from": 0, "functions": ["nvmlInit_v2"]}})");
  auto options = FakeDriver::options();
  options.start_limit = std::chrono::hours(1);
  int asked_count = 0;
  const auto collector = Collector::start(options, clock, [&] { return ++asked_count > 2; });
  ASSERT_FALSE(collector);
  EXPECT_EQ(collector.error().kind, ErrorKind::Cancelled);
  EXPECT_EQ(asked_count, 3);
}

TEST(Collector, AKilledSamplerIsStartedAgain) {
  const SteadyClock clock;
  const auto collector = Collector::start(simulated("sim:1xL4-24G"), clock);
  ASSERT_TRUE(collector) << collector.error().message;
  SampleWait wait(**collector);
  const auto before = (*collector)->snapshot();
  ASSERT_TRUE(before.collector.sampler_pid);
  ::kill(static_cast<pid_t>(*before.collector.sampler_pid), SIGKILL);
  EXPECT_TRUE(wait.until([&] {
    const auto now = (*collector)->snapshot();
    return now.collector.restarts == 1 && now.devices[0].last_success_unix_seconds.value_or(0) >
                                              *before.devices[0].last_success_unix_seconds + 0.1;
  }));
  const auto after = (*collector)->snapshot();
  EXPECT_NE(after.collector.sampler_pid, before.collector.sampler_pid);
  EXPECT_TRUE(after.devices[0].is_up) << after.devices[0].down_reason;
}

TEST(Collector, HistoryAndEdgesAreThere) {
  const SteadyClock clock;
  const auto collector = Collector::start(simulated("sim:1xL4-24G"), clock);
  ASSERT_TRUE(collector) << collector.error().message;
  SampleWait wait(**collector);
  EXPECT_TRUE(wait.until(
      [&] { return (*collector)->history(0, Reading::GpuEnergy, seconds(10)).size() >= 3; }));
  const auto points = (*collector)->history(0, Reading::GpuEnergy, seconds(10));
  EXPECT_TRUE(std::ranges::is_sorted(points, {}, &HistoryPoint::at));
  EXPECT_TRUE(std::ranges::is_sorted(points, {}, &HistoryPoint::value));
  const auto edges = (*collector)->find_edges(seconds(10));
  ASSERT_TRUE(edges) << edges.error().message;
  ASSERT_EQ(edges->size(), 1U);
  EXPECT_TRUE(edges->front().at || !edges->front().missing_reason.empty());
}

TEST(Collector, ReadingsOfACpuAreThereWhenItsEdgesAre) {
  const SteadyClock clock;
  std::mutex mutex;  // both outlive the collector's thread
  std::vector<DeviceSample> samples;
  CollectorOptions options;
  options.periods = {milliseconds(100), std::chrono::hours(1), std::chrono::hours(1)};
  const auto collector = Collector::start(options, clock);
  ASSERT_TRUE(collector) << collector.error().message;
  (*collector)->subscribe([&](const DeviceSample& sample) {
    const std::lock_guard lock(mutex);
    samples.push_back(sample);
  });
  ASSERT_TRUE((*collector)->find_edges(seconds(10)));
  const std::lock_guard lock(mutex);
  const auto is_of_cpu = [&](const DeviceSample& sample) {
    return (*collector)->machine().devices[sample.device].device.kind == DeviceKind::Cpu;
  };
  const auto found = std::ranges::find_if(samples, is_of_cpu);
  ASSERT_NE(found, samples.end());
  EXPECT_TRUE(found->readings.has(Reading::CpuMemorySize));
}

TEST(Collector, ADeviceInWhoseCallTheSamplerDiedTwiceIsLeftOut) {
  const SteadyClock clock;
  const FakeDriver driver(R"({"fake_nvml": 1, "gpus": [{"model": "T4"},
    {"model": "T4", "crash": {"from": 0.3, "functions": ["nvmlDeviceGetUtilizationRates"]}}]})");
  const auto collector = Collector::start(FakeDriver::options(), clock);
  ASSERT_TRUE(collector) << collector.error().message;
  SampleWait wait(**collector);
  EXPECT_TRUE(wait.until([&] {
    return (*collector)->snapshot().devices[1].down_reason.starts_with("left out: ");
  })) << (*collector)->snapshot().devices[1].down_reason;
  const auto reason = (*collector)->snapshot().devices[1].down_reason;
  EXPECT_NE(reason.find("nvmlDeviceGetUtilizationRates ended the sampler 2 times"),
            std::string::npos)
      << reason;
  EXPECT_TRUE(wait.until([&] { return (*collector)->snapshot().devices[0].is_up; }));
}

}  // namespace
}  // namespace muster

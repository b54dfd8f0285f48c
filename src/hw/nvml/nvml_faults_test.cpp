// Every function that is used fails in turn: only what comes of it is gone, and it is said.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "hw/nvml/nvml_driver_fixture.h"

namespace muster {
namespace {

// With something of everything, and a process of this and one of another pid namespace.
std::string scenario(const std::string& errors) {
  return R"({"fake_nvml": 1, "clock": "stepped", "errors": {)" + errors + R"(}, "gpus": [
    {"model": "H200", "load": 0.5,
     "processes": [{"pid": 11, "memory_bytes": 5}, {"pid": 12, "name": "far"}],
     "mig": [{"profile": "1g.18gb"}]},
    {"model": "H200", "load": 0.5,
     "processes": [{"pid": 11, "memory_bytes": 5}, {"pid": 12, "name": "far"}]}]})";
}

struct Outcome {
  bool is_open = false;
  std::vector<DeviceSample> samples;  // the last visit to each device
  std::set<std::string> functions;    // that were called
};

Outcome watch_with(const std::string& errors) {
  Outcome outcome;
  FakeDriver driver(scenario(errors));
  driver.put("proc/11/comm", "near\n");
  auto source = open_nvml(driver.options(), driver.watch);
  outcome.is_open = source.has_value();
  if (source) {
    for (int second = 1; second <= 2; ++second) {
      driver.at(second);
      outcome.samples.clear();
      for (const auto& sampler : source->samplers) {
        outcome.samples.push_back(driver.visit(*sampler));
        sampler->energy_joules(driver.watch);
      }
      if (source->events != nullptr) (void)source->events->wait(Duration(0));
    }
  }
  for (const auto& [function, count] : driver.watch.counts) outcome.functions.insert(function);
  return outcome;
}

std::set<Reading> readings_of(const DeviceSample& sample) {
  std::set<Reading> readings;
  for (const auto& info : reading_table()) {
    if (sample.readings.has(info.reading)) readings.insert(info.reading);
  }
  return readings;
}

std::set<Reading> failed(const DeviceSample& sample) {
  std::set<Reading> readings;
  for (const auto& error : sample.errors) readings.insert(error.reading);
  return readings;
}

std::set<Reading> without(const std::set<Reading>& all, const std::set<Reading>& some) {
  std::set<Reading> rest;
  std::set_difference(all.begin(), all.end(), some.begin(), some.end(),
                      std::inserter(rest, rest.end()));
  return rest;
}

std::string error(const std::string& function, const char* code) {
  return "\"" + function + "\": \"" + code + "\"";
}

// What is asked once, when the driver is opened: without it, what builds on it is not offered.
const std::set<std::string> kAskedAtOpen{"nvmlGpmQueryDeviceSupport",
                                         "nvmlGpmSampleAlloc",
                                         "nvmlDeviceGetMigMode",
                                         "nvmlDeviceGetMaxMigDeviceCount",
                                         "nvmlDeviceGetMigDeviceHandleByIndex",
                                         "nvmlDeviceGetGpuInstanceId",
                                         "nvmlDeviceGetHandleByIndex_v2"};

TEST(NvmlFaults, AFailingFunctionTakesOnlyItsOwnReadingsAndIsListed) {
  const auto sound = watch_with("");
  ASSERT_EQ(sound.samples.size(), 3U);
  ASSERT_GE(sound.functions.size(), 50U);
  for (const auto& sample : sound.samples) EXPECT_TRUE(sample.errors.empty());
  for (const auto& function : sound.functions) {
    SCOPED_TRACE(function);
    const auto broken = watch_with(error(function, "UNKNOWN"));
    if (function == "nvmlInit_v2" || function == "nvmlDeviceGetCount_v2") {
      EXPECT_FALSE(broken.is_open);
      continue;
    }
    ASSERT_TRUE(broken.is_open);
    if (kAskedAtOpen.count(function) > 0) continue;
    ASSERT_EQ(broken.samples.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      const auto lost = without(readings_of(sound.samples[i]), readings_of(broken.samples[i]));
      EXPECT_TRUE(without(lost, failed(broken.samples[i])).empty())
          << "device " << i << " lost what it does not list";
      // The two that give most: a batch of fields, the shares of activity and PCIe's bytes.
      EXPECT_LE(lost.size(), function == "nvmlDeviceGetFieldValues" ? 40U : 13U);
      EXPECT_FALSE(broken.samples[i].lost_reason);
    }
  }
}

TEST(NvmlFaults, AFunctionThatIsNotSupportedIsNoError) {
  const auto sound = watch_with("");
  for (const auto& function : sound.functions) {
    SCOPED_TRACE(function);
    const auto older = watch_with(error(function, "NOT_SUPPORTED"));
    for (const auto& sample : older.samples) EXPECT_TRUE(sample.errors.empty());
  }
}

TEST(NvmlFaults, AnyFunctionMaySayThatTheGpuIsLost) {
  const auto sound = watch_with("");
  for (const auto& function : sound.functions) {
    SCOPED_TRACE(function);
    const auto broken = watch_with(error(function, "GPU_IS_LOST"));
    for (const auto& sample : broken.samples) {
      EXPECT_TRUE(sample.errors.empty());
      if (sample.lost_reason) {
        EXPECT_EQ(*sample.lost_reason, "GPU is lost (NVML 15)");
      }
    }
  }
}

TEST(NvmlFaults, TheFallbackTakesOverWhereANewerFunctionIsNotSupported) {
  const auto memory = watch_with(error("nvmlDeviceGetMemoryInfo_v2", "NOT_SUPPORTED"));
  EXPECT_TRUE(memory.samples[0].readings.has(Reading::GpuMemoryUsed));
  const auto temperature = watch_with(error("nvmlDeviceGetTemperatureV", "NOT_SUPPORTED"));
  EXPECT_TRUE(temperature.samples[0].readings.has(Reading::GpuTemperatureCore));
  const auto fields = watch_with(error("nvmlDeviceGetFieldValues", "NOT_SUPPORTED"));
  for (const auto reading :
       {Reading::GpuPowerAverage, Reading::GpuEnergy, Reading::GpuPowerLimitEnforced,
        Reading::GpuPowerLimitDefault, Reading::GpuPowerLimitMin, Reading::GpuPowerLimitMax,
        Reading::GpuPcieReplays, Reading::GpuNvlinkLinksActive, Reading::GpuEccCorrectedVolatile,
        Reading::GpuRemapPending, Reading::GpuNvlinkSent}) {
    EXPECT_TRUE(fields.samples[2].readings.has(reading)) << reading_info(reading).name;
  }
}

}  // namespace
}  // namespace muster

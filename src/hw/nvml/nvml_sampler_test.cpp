// What a whole GPU tells, against the stand-in driver.
#include <gtest/gtest.h>

#include <set>

#include "hw/nvml/nvml_driver_fixture.h"

namespace muster {
namespace {

using enum Reading;

// Half loaded all the time: 100 + 0.5 x (600 - 100) = 350 W. Of 18 links 2 are down.
constexpr const char* kBusy = R"({
  "fake_nvml": 1, "clock": "stepped",
  "gpus": [
    {"model": "H200", "load": 0.5, "idle_watts": 100, "load_watts": 600, "energy_joules": 1000,
     "traffic": {"pcie_sent": 2e9, "pcie_received": 4e9,
                 "nvlink_sent": 10240000, "nvlink_received": 20480000},
     "activity": {"memory_busy": 0.5, "sm": 0.9, "occupancy": 0.3, "tensor": 0.8, "dfma": 0.02,
                  "hmma": 0.6, "imma": 0.1, "dram": 0.4, "fp64": 0.04, "fp32": 0.16,
                  "fp16": 0.06, "int": 0.12},
     "values": {"ecc_corrected_volatile": 1, "ecc_uncorrected_volatile": 2,
                "ecc_corrected_aggregate": 3, "ecc_uncorrected_aggregate": 4,
                "remapped_correctable": 5, "remapped_uncorrectable": 6,
                "remap_pending": 1, "remap_failed": 1,
                "nvlink_crc_flit": 11, "nvlink_crc_data": 12, "nvlink_replay": 13,
                "nvlink_recovery": 14, "nvlink_links_down": 2, "pcie_replays": 15,
                "pcie_generation": 3, "pcie_lanes": 8, "recovery_action": 4,
                "temperature_core": 61, "temperature_memory": 45, "power_limit_watts": 650,
                "memory_used_bytes": 50000000000, "module_power_watts": 900,
                "memory_power_watts": 80},
     "throttle": [{"reason": "sw_power_cap", "from": 2, "until": 5},
                  {"reason": "sync_boost", "from": 1, "until": 2},
                  {"reason": "sw_thermal", "from": 1, "until": 5},
                  {"reason": "hw_thermal", "from": 1, "until": 1.5},
                  {"reason": "hw_power_brake", "from": 3, "until": 5},
                  {"reason": "hw_slowdown", "from": 6}]},
    {"model": "H200"}]})";

struct Expected {
  Reading reading;
  double value;
};

void expect(const DeviceSample& sample, std::initializer_list<Expected> all) {
  for (const auto& [reading, value] : all) {
    SCOPED_TRACE(reading_info(reading).name);
    const auto read = sample.readings.get(reading);
    ASSERT_TRUE(read);
    EXPECT_NEAR(*read, value, 1e-9 * std::abs(value) + 1e-12);
  }
}

TEST(NvmlSampler, ReadsTheFastTierInThreeCalls) {
  FakeDriver driver(kBusy);
  const auto source = driver.open();
  driver.at(10);
  driver.visit(*source.samplers[0], {Tier::Fast});
  driver.watch.counts.clear();
  const auto sample = driver.visit(*source.samplers[0], {Tier::Fast});
  EXPECT_EQ(sample.call_count, 2U);
  EXPECT_EQ(driver.watch.counts,
            (std::map<std::string, int>{{"nvmlDeviceGetFieldValues", 1},
                                        {"nvmlDeviceGetUtilizationRates", 1}}));
  EXPECT_EQ(sample.readings.count(), 5U);
  EXPECT_TRUE(sample.errors.empty());
  EXPECT_FALSE(sample.lost_reason);
  expect(sample, {{GpuUtilization, 0.5},
                  {GpuMemoryBusy, 0.25},
                  {GpuPowerInstant, 350},
                  {GpuPowerAverage, 350},
                  {GpuEnergy, 1000 + 350 * 10}});
}

TEST(NvmlSampler, ReadsTheMediumTier) {
  FakeDriver driver(kBusy);
  const auto source = driver.open();
  driver.at(10);
  driver.visit(*source.samplers[0], {Tier::Medium});
  driver.at(11);
  const auto sample = driver.visit(*source.samplers[0], {Tier::Medium});
  EXPECT_TRUE(sample.errors.empty());
  expect(sample, {{GpuModulePowerInstant, 900},
                  {GpuModulePowerAverage, 900},
                  {GpuMemoryPowerInstant, 80},
                  {GpuMemoryUsed, 50e9},
                  {GpuMemoryReserved, 643825664},
                  {GpuMemorySize, 150754820096},
                  {GpuMemoryFree, 150754820096.0 - 643825664 - 50e9},
                  {GpuTemperatureCore, 61},
                  {GpuTemperatureMemory, 45},
                  {GpuTemperatureHeadroom, 87 - 61},
                  // A hardware slowdown halves the 1,980 MHz; video runs at 1545/1980 of that.
                  {GpuClockEvents, 0x8},
                  {GpuClockGraphics, 990e6},
                  {GpuClockSm, 990e6},
                  {GpuClockMemory, 3201e6},
                  {GpuClockVideo, 772e6},
                  {GpuThrottleSwPowerCap, 3},
                  {GpuThrottleSyncBoost, 1},
                  {GpuThrottleSwThermal, 4},
                  {GpuThrottleHwThermal, 0.5},
                  {GpuThrottleHwPowerBrake, 2},
                  // 11 s at half load, whole KiB.
                  {GpuNvlinkSent, 10240000 * 5.5},
                  {GpuNvlinkReceived, 20480000 * 5.5},
                  {GpuRecoveryAction, 4}});
}

TEST(NvmlSampler, ReadsActivityBetweenTwoVisits) {
  FakeDriver driver(kBusy);
  const auto source = driver.open();
  driver.at(10);
  const auto first = driver.visit(*source.samplers[0], {Tier::Medium});
  EXPECT_FALSE(first.readings.has(GpuSmActive)) << "one sample tells nothing";
  EXPECT_EQ(first.readings.get(GpuPcieSent), 0.0) << "bytes are counted from here";
  EXPECT_TRUE(first.errors.empty());
  driver.at(10.05);
  driver.watch.counts.clear();
  driver.visit(*source.samplers[0], {Tier::Medium});
  EXPECT_EQ(driver.watch.counts["nvmlGpmSampleGet"], 0) << "less than 100 ms later";
  driver.at(12);
  const auto sample = driver.visit(*source.samplers[0], {Tier::Medium});
  // Half of each share, as the load is half; traffic over the two seconds since the first sample.
  expect(sample, {{GpuSmActive, 0.45},
                  {GpuSmOccupancy, 0.15},
                  {GpuTensorActiveAny, 0.4},
                  {GpuTensorActiveHmma, 0.3},
                  {GpuTensorActiveImma, 0.05},
                  {GpuTensorActiveDfma, 0.01},
                  {GpuDramActive, 0.2},
                  {GpuPipeFp64Active, 0.02},
                  {GpuPipeFp32Active, 0.08},
                  {GpuPipeFp16Active, 0.03},
                  {GpuPipeIntActive, 0.06},
                  {GpuPcieSent, 2e9 * 0.5 * 2},
                  {GpuPcieReceived, 4e9 * 0.5 * 2}});
}

TEST(NvmlSampler, ReadsTheSlowTier) {
  FakeDriver driver(kBusy);
  const auto source = driver.open();
  driver.at(10);
  const auto sample = driver.visit(*source.samplers[0], {Tier::Slow});
  EXPECT_TRUE(sample.errors.empty());
  expect(sample, {{GpuPowerLimitEnforced, 650},
                  {GpuPowerLimitDefault, 700},
                  {GpuPowerLimitMin, 200},
                  {GpuPowerLimitMax, 700},
                  {GpuTemperatureLimitShutdown, 95},
                  {GpuTemperatureLimitSlowdown, 89},
                  {GpuTemperatureLimitCore, 87},
                  {GpuTemperatureLimitMemory, 95},
                  {GpuClockMaxGraphics, 1980e6},
                  {GpuClockMaxSm, 1980e6},
                  {GpuClockMaxMemory, 3201e6},
                  {GpuClockMaxVideo, 1545e6},
                  {GpuPcieGeneration, 3},
                  {GpuPcieLanes, 8},
                  {GpuPcieGenerationMax, 5},
                  {GpuPcieLanesMax, 16},
                  {GpuPcieReplays, 15},
                  {GpuNvlinkLinksActive, 16},
                  {GpuNvlinkCrcFlitErrors, 11},
                  {GpuNvlinkCrcDataErrors, 12},
                  {GpuNvlinkReplayErrors, 13},
                  {GpuNvlinkRecoveryErrors, 14},
                  {GpuEccCorrectedVolatile, 1},
                  {GpuEccUncorrectedVolatile, 2},
                  {GpuEccCorrectedAggregate, 3},
                  {GpuEccUncorrectedAggregate, 4},
                  {GpuRemappedRowsCorrectable, 5},
                  {GpuRemappedRowsUncorrectable, 6},
                  {GpuRemapPending, 1},
                  {GpuRemapFailed, 1},
                  {GpuProcessCount, 0}});
  EXPECT_FALSE(sample.readings.has(GpuRetiredPagesSingleBit)) << "it replaces rows instead";
}

TEST(NvmlSampler, AsksOnlyOnceForWhatIsNotOffered) {
  FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped", "gpus": [{"model": "T4"}]})");
  const auto source = driver.open();
  driver.at(1);
  const auto first = driver.visit(*source.samplers[0]);
  EXPECT_TRUE(first.errors.empty()) << "not supported is no error";
  EXPECT_EQ(driver.watch.counts["nvmlDeviceGetMarginTemperature"], 1);
  driver.watch.counts.clear();
  driver.at(2);
  const auto sample = driver.visit(*source.samplers[0]);
  EXPECT_TRUE(sample.errors.empty());
  EXPECT_EQ(driver.watch.counts.count("nvmlDeviceGetMarginTemperature"), 0U) << "from Ada on";
  EXPECT_EQ(driver.watch.counts.count("nvmlGpmSampleGet"), 0U) << "from Hopper on";
  EXPECT_EQ(driver.watch.counts.count("nvmlDeviceGetPowerUsage"), 0U) << "the field is offered";
  EXPECT_EQ(driver.watch.counts["nvmlDeviceGetFieldValues"], 3) << "one for each tier";
  EXPECT_TRUE(sample.readings.has(GpuPowerInstant));
  EXPECT_FALSE(sample.readings.has(GpuPowerAverage)) << "from Ampere on";
  for (const auto& [function, code] : driver.watch.last_codes) {
    if (driver.watch.counts.count(function) > 0) {
      EXPECT_EQ(code, 0) << function;
    }
  }
}

TEST(NvmlSampler, CountsPcieBytesByTheirWrapsWhereThereIsNoGpm) {
  // 20 GB/s over a link of generation 4: 4 GiB in 215 ms.
  FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped", "gpus": [
      {"model": "A100-80G", "load": 1, "traffic": {"pcie_sent": 20e9, "pcie_received": 1e9}}]})");
  const auto source = driver.open();
  DeviceSample sample;
  for (int tick = 0; tick <= 10; ++tick) {
    driver.at(tick * 0.1);
    sample = driver.visit(*source.samplers[0], {Tier::Fast});
    EXPECT_EQ(sample.call_count, 2U);
  }
  sample = driver.visit(*source.samplers[0], {Tier::Medium});
  expect(sample, {{GpuPcieSent, 20e9}, {GpuPcieReceived, 1e9}});
}

TEST(NvmlSampler, AnOldDriversPowerIsWhatItsHeaderSays) {
  // 450 knows no power fields; the call gives instant power on GA100, a mean on other Ampere GPUs.
  FakeDriver driver(R"({"fake_nvml": 1, "driver": "450.248.02", "clock": "stepped", "gpus": [
      {"model": "A100-40G", "load": 1, "idle_watts": 100, "load_watts": 300, "energy_joules": 7},
      {"model": "A10G", "load": 1, "idle_watts": 50, "load_watts": 200}]})",
                    "libfakenvml-450.so");
  const auto source = driver.open();
  driver.at(10);
  const auto ga100 = driver.visit(*source.samplers[0], {Tier::Fast, Tier::Medium});
  expect(ga100, {{GpuPowerInstant, 300}, {GpuEnergy, 7 + 3000}});
  EXPECT_FALSE(ga100.readings.has(GpuPowerAverage));
  EXPECT_TRUE(ga100.readings.has(GpuClockEvents)) << "under its older name";
  const auto ga102 = driver.visit(*source.samplers[1], {Tier::Fast});
  expect(ga102, {{GpuPowerAverage, 200}});
  EXPECT_FALSE(ga102.readings.has(GpuPowerInstant));
}

TEST(NvmlSampler, TheFirstMemoryCallHasWhatIsReservedInUse) {
  FakeDriver driver(R"({"fake_nvml": 1, "driver": "450.248.02", "clock": "stepped", "gpus": [
      {"model": "A100-40G", "memory_bytes": 42949672960, "reserved_bytes": 1000000,
       "values": {"memory_used_bytes": 5000000}}]})",
                    "libfakenvml-450.so");
  const auto source = driver.open();
  const auto sample = driver.visit(*source.samplers[0], {Tier::Medium});
  expect(sample, {{GpuMemoryUsed, 6000000},
                  {GpuMemoryFree, 42949672960.0 - 6000000},
                  {GpuMemorySize, 42949672960}});
  EXPECT_FALSE(sample.readings.has(GpuMemoryReserved)) << "it is not told apart";
}

TEST(NvmlSampler, RetiredPagesAreCountedWhereRowsAreNotReplaced) {
  FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped", "gpus": [
      {"model": "V100-16G", "values": {"retired_single_bit": 3, "retired_double_bit": 1}}]})");
  const auto source = driver.open();
  const auto sample = driver.visit(*source.samplers[0], {Tier::Slow});
  expect(sample, {{GpuRetiredPagesSingleBit, 3}, {GpuRetiredPagesDoubleBit, 1}});
  EXPECT_FALSE(sample.readings.has(GpuRemappedRowsCorrectable));
}

TEST(NvmlSampler, ABrokenFieldIsUnsetAndListedAlone) {
  FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped", "gpus": [
      {"model": "H200", "field_errors": {"186": {"code": "UNKNOWN", "from": 5}}}]})");
  const auto source = driver.open();
  driver.at(4);
  EXPECT_TRUE(driver.visit(*source.samplers[0], {Tier::Fast}).readings.has(GpuPowerInstant));
  driver.at(6);
  const auto sample = driver.visit(*source.samplers[0], {Tier::Fast});
  EXPECT_FALSE(sample.readings.has(GpuPowerInstant));
  EXPECT_EQ(sample.readings.count(), 4U);
  ASSERT_EQ(sample.errors.size(), 1U);
  EXPECT_EQ(sample.errors[0].reading, GpuPowerInstant);
  EXPECT_EQ(sample.errors[0].code, 999);
}

TEST(NvmlSampler, ABrokenBatchFailsAllOfItsReadingsAndComesBack) {
  FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped", "gpus": [{"model": "H200",
      "errors": {"nvmlDeviceGetFieldValues": {"code": "IRQ_ISSUE", "from": 5, "until": 7}}}]})");
  const auto source = driver.open();
  driver.at(4);
  driver.visit(*source.samplers[0], {Tier::Fast});
  driver.at(6);
  const auto sample = driver.visit(*source.samplers[0], {Tier::Fast});
  std::set<Reading> failed;
  for (const auto& error : sample.errors) {
    failed.insert(error.reading);
    EXPECT_EQ(error.code, 11);
  }
  EXPECT_EQ(failed, (std::set<Reading>{GpuPowerInstant, GpuPowerAverage, GpuEnergy}));
  EXPECT_EQ(sample.readings.count(), 2U);
  driver.at(8);
  EXPECT_EQ(driver.visit(*source.samplers[0], {Tier::Fast}).readings.count(), 5U);
}

TEST(NvmlSampler, AGpuThatIsLostSaysSoAndIsAskedNoMore) {
  FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped", "gpus": [
      {"model": "H200", "lost": {"from": 5}}, {"model": "H200"}]})");
  const auto source = driver.open();
  driver.at(4);
  EXPECT_FALSE(driver.visit(*source.samplers[0]).lost_reason);
  driver.at(6);
  const auto sample = driver.visit(*source.samplers[0]);
  EXPECT_EQ(sample.lost_reason, "GPU is lost (NVML 15)");
  EXPECT_EQ(sample.call_count, 1U);
  EXPECT_EQ(sample.readings.count(), 0U);
  EXPECT_FALSE(driver.visit(*source.samplers[1]).lost_reason);
}

// From second 5 on the energy field fails, which shows who asks for it.
constexpr const char* kSlowEnergy = R"({
  "fake_nvml": 1, "clock": "stepped", "gpus": [
    {"model": "H200", "energy_joules": 7, "idle_watts": 100, "field_delays_us": {"83": 500},
     "field_errors": {"83": {"code": "UNKNOWN", "from": 5}}},
    {"model": "H200", "energy_joules": 7, "idle_watts": 100,
     "field_errors": {"83": {"code": "UNKNOWN", "from": 5}}}]})";

TEST(NvmlSampler, ASlowEnergyCounterIsReadInTheMediumTier) {
  FakeDriver driver(kSlowEnergy);
  const auto source = driver.open();
  driver.at(4);
  const auto fast = driver.visit(*source.samplers[0], {Tier::Fast});
  EXPECT_EQ(fast.call_count, 2U);
  EXPECT_EQ(fast.readings.count(), 4U) << "all others are read as ever";
  EXPECT_FALSE(fast.readings.has(GpuEnergy));
  driver.visit(*source.samplers[0], {Tier::Medium});
  driver.watch.counts.clear();
  expect(driver.visit(*source.samplers[0], {Tier::Medium}), {{GpuEnergy, 7 + 400}});
  EXPECT_EQ(driver.watch.counts["nvmlDeviceGetFieldValues"], 1);
  EXPECT_EQ(driver.watch.counts.count("nvmlDeviceGetTotalEnergyConsumption"), 0U);
}

TEST(NvmlSampler, ASlowEnergyCounterIsNotAskedForInTheFastTier) {
  FakeDriver driver(kSlowEnergy);
  const auto source = driver.open();
  driver.at(4);
  driver.visit(*source.samplers[0]);
  driver.at(6);
  EXPECT_TRUE(driver.visit(*source.samplers[0], {Tier::Fast}).errors.empty());
  const auto medium = driver.visit(*source.samplers[0], {Tier::Medium});
  ASSERT_EQ(medium.errors.size(), 1U);
  EXPECT_EQ(medium.errors[0].reading, GpuEnergy);
  EXPECT_FALSE(medium.readings.has(GpuEnergy));
}

TEST(NvmlSampler, ACheapEnergyCounterIsAskedForInTheFastTierAlone) {
  FakeDriver driver(kSlowEnergy);
  const auto source = driver.open();
  driver.at(4);
  expect(driver.visit(*source.samplers[1], {Tier::Fast}), {{GpuEnergy, 7 + 400}});
  EXPECT_FALSE(driver.visit(*source.samplers[1], {Tier::Medium}).readings.has(GpuEnergy));
  driver.at(6);
  EXPECT_EQ(driver.visit(*source.samplers[1], {Tier::Fast}).errors.size(), 1U);
  EXPECT_TRUE(driver.visit(*source.samplers[1], {Tier::Medium}).errors.empty());
}

TEST(NvmlSampler, ASlowEnergyCounterWithoutAFieldIsReadInTheMediumTierToo) {
  FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped",
    "delays_us": {"nvmlDeviceGetTotalEnergyConsumption": 500}, "gpus": [
      {"model": "H200", "energy_joules": 7, "idle_watts": 100, "field_errors": {"83": 3}}]})");
  const auto source = driver.open();
  driver.at(4);
  driver.visit(*source.samplers[0]);
  driver.watch.counts.clear();
  EXPECT_FALSE(driver.visit(*source.samplers[0], {Tier::Fast}).readings.has(GpuEnergy));
  EXPECT_EQ(driver.watch.counts.count("nvmlDeviceGetTotalEnergyConsumption"), 0U);
  expect(driver.visit(*source.samplers[0], {Tier::Medium}), {{GpuEnergy, 7 + 400}});
  EXPECT_EQ(driver.watch.counts["nvmlDeviceGetTotalEnergyConsumption"], 1);
}

TEST(NvmlSampler, EnergyAloneTakesOneCall) {
  FakeDriver driver(kBusy);
  const auto source = driver.open();
  driver.at(10);
  driver.watch.counts.clear();
  EXPECT_DOUBLE_EQ(source.samplers[0]->energy_joules(driver.watch).value(), 4500);
  EXPECT_EQ(driver.watch.counts.size(), 1U);
  EXPECT_EQ(driver.watch.counts.begin()->second, 1);
}

TEST(NvmlSampler, AnEnergyCounterThatGoesAwayIsNoError) {
  FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped", "gpus": [
      {"model": "H200", "energy_missing": {"from": 5}}]})");
  const auto source = driver.open();
  driver.at(4);
  EXPECT_TRUE(driver.visit(*source.samplers[0], {Tier::Fast}).readings.has(GpuEnergy));
  driver.at(6);
  const auto sample = driver.visit(*source.samplers[0], {Tier::Fast});
  EXPECT_FALSE(sample.readings.has(GpuEnergy));
  EXPECT_TRUE(sample.errors.empty());
  EXPECT_FALSE(source.samplers[0]->energy_joules(driver.watch));
}

TEST(NvmlSampler, BlackwellCountsItsLinksOneByOne) {
  FakeDriver driver(R"({"fake_nvml": 1, "clock": "stepped", "gpus": [
      {"model": "B200", "load": 1, "traffic": {"nvlink_sent": 18000, "nvlink_received": 36000},
       "values": {"nvlink_recovery": 3}}, {"model": "B200"}]})");
  const auto source = driver.open();
  driver.at(10);
  const auto sample = driver.visit(*source.samplers[0]);
  expect(sample, {{GpuNvlinkSent, 180000},
                  {GpuNvlinkReceived, 360000},
                  {GpuNvlinkLinksActive, 18},
                  {GpuNvlinkRecoveryErrors, 3}});
}

}  // namespace
}  // namespace muster

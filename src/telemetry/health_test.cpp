#include "telemetry/health.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace muster {
namespace {

constexpr double kNow = 1'700'000'000;

DeviceStatus well_gpu() {
  DeviceStatus status;
  status.identity.device.kind = DeviceKind::Cuda;
  status.is_up = true;
  return status;
}

HealthFinding finding(const DeviceStatus& status, std::string_view watch) {
  const auto findings = judge(status, kNow);
  const auto found = std::ranges::find(findings, watch, &HealthFinding::watch);
  EXPECT_NE(found, findings.end()) << watch;
  return found == findings.end() ? HealthFinding{} : *found;
}

DeviceStatus with(Reading reading, double value) {
  auto status = well_gpu();
  status.readings.set(reading, value);
  return status;
}

TEST(Health, WithoutReadingsOnlyPresenceAndXidsAreJudged) {
  const auto findings = judge(well_gpu(), kNow);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].watch, "present");
  EXPECT_EQ(findings[1].watch, "xid");
  for (const auto& found : findings) {
    EXPECT_EQ(found.state, HealthState::Well);
    EXPECT_EQ(found.sentence, "");
  }
}

TEST(Health, ADeviceThatIsDownIsUnfitForItsReason) {
  auto status = well_gpu();
  status.is_up = false;
  status.down_reason = "GPU is lost (NVML 15)";
  EXPECT_EQ(finding(status, "present").state, HealthState::Unfit);
  EXPECT_EQ(finding(status, "present").sentence, "GPU is lost (NVML 15)");
}

TEST(Health, XidsAreOfThreeClasses) {
  const auto state_of = [](std::uint32_t code, double age_seconds) {
    auto status = well_gpu();
    status.xids[code] = {1, kNow - age_seconds};
    return finding(status, "xid").state;
  };
  for (const std::uint32_t code : {13U, 31U, 43U, 45U, 63U, 92U}) {
    EXPECT_EQ(state_of(code, 0), HealthState::Well) << code;
  }
  for (const std::uint32_t code : {48U, 62U, 64U, 74U, 79U, 95U, 119U, 120U, 140U}) {
    EXPECT_EQ(state_of(code, 0), HealthState::Unfit) << code;
  }
  EXPECT_EQ(state_of(94, 0), HealthState::Warning);
  EXPECT_EQ(state_of(79, 3600), HealthState::Unfit);
  EXPECT_EQ(state_of(79, 3601), HealthState::Well);
  auto status = well_gpu();
  status.xids[13] = {5, kNow};
  status.xids[79] = {2, kNow};
  EXPECT_EQ(finding(status, "xid").sentence, "the driver reported XID 79 (2 times)");
  status.xids[48] = {1, kNow - 3601};
  status.xids[94] = {1, kNow};
  status.xids[119] = {1, kNow - 3600};
  EXPECT_EQ(unfit_xids(status, kNow), (std::vector<std::uint32_t>{79, 119}));
}

TEST(Health, EachThresholdFromBothSides) {
  struct Case {
    Reading reading;
    std::string_view watch;
    double value;
    HealthState state;
  };
  using enum HealthState;
  const std::vector<Case> cases{
      {Reading::GpuRecoveryAction, "recovery", 0, Well},
      {Reading::GpuRecoveryAction, "recovery", 1, Unfit},
      {Reading::GpuEccUncorrectedVolatile, "ecc", 0, Well},
      {Reading::GpuEccUncorrectedVolatile, "ecc", 1, Unfit},
      {Reading::GpuRemapPending, "remap", 0, Well},
      {Reading::GpuRemapPending, "remap", 1, Warning},
      {Reading::GpuRemapFailed, "remap", 1, Unfit},
      {Reading::GpuRetiredPagesSingleBit, "pages", 15, Well},
      {Reading::GpuRetiredPagesSingleBit, "pages", 16, Warning},
      {Reading::GpuRetiredPagesDoubleBit, "pages", 62, Warning},
      {Reading::GpuRetiredPagesDoubleBit, "pages", 63, Unfit},
      {Reading::GpuTemperatureHeadroom, "thermal", 5, Well},
      {Reading::GpuTemperatureHeadroom, "thermal", 4, Warning},
      {Reading::GpuClockEvents, "thermal", 0x20, Well},  // software: it does what it should
      {Reading::GpuClockEvents, "thermal", 0x40, Warning},
      {Reading::GpuClockEvents, "power_brake", 0x40, Well},
      {Reading::GpuClockEvents, "power_brake", 0x80, Warning},
      {Reading::GpuNvlinkRecoveryErrors, "nvlink", 0, Well},
      {Reading::GpuNvlinkRecoveryErrors, "nvlink", 1, Warning},
  };
  for (const auto& one : cases) {
    const auto found = finding(with(one.reading, one.value), one.watch);
    EXPECT_EQ(found.state, one.state) << one.watch << " " << one.value;
    EXPECT_EQ(found.sentence.empty(), one.state == Well) << one.watch;
  }
}

TEST(Health, LinksAreMissedWhereASwitchJoinsAll) {
  auto status = with(Reading::GpuNvlinkLinksActive, 18);
  status.identity.device.model = "NVIDIA H100 80GB HBM3";  // 18 links to the switch
  EXPECT_EQ(finding(status, "nvlink").state, HealthState::Well);
  status.readings.set(Reading::GpuNvlinkLinksActive, 17);
  EXPECT_EQ(finding(status, "nvlink").sentence, "NVLinks that are up: 17 of 18");
}

TEST(Health, ALinkIsJudgedWhileTheGpuIsBusy) {
  auto status = with(Reading::GpuPcieLanes, 8);
  status.readings.set(Reading::GpuPcieLanesMax, 16);
  status.readings.set(Reading::GpuPcieGeneration, 5);
  status.readings.set(Reading::GpuPcieGenerationMax, 5);
  EXPECT_EQ(finding(status, "pcie").state, HealthState::Well);
  status.readings.set(Reading::GpuUtilization, 0.5);
  EXPECT_EQ(finding(status, "pcie").sentence,
            "PCIe link while busy: generation 5 of 5, lanes 8 of 16");
  status.readings.set(Reading::GpuPcieLanes, 16);
  EXPECT_EQ(finding(status, "pcie").state, HealthState::Well);
}

TEST(Health, MemoryIsFullAboveNinetyFivePercent) {
  auto gpu = with(Reading::GpuMemorySize, 100);
  gpu.readings.set(Reading::GpuMemoryUsed, 95);
  EXPECT_EQ(finding(gpu, "memory").state, HealthState::Well);
  gpu.readings.set(Reading::GpuMemoryUsed, 96);
  EXPECT_EQ(finding(gpu, "memory").sentence, "memory is used to 96 %");
  DeviceStatus cpu;
  cpu.is_up = true;
  cpu.readings.set(Reading::HostMemorySize, 1000);
  cpu.readings.set(Reading::HostMemoryLimit, 100);
  cpu.readings.set(Reading::HostMemoryAvailable, 3);
  EXPECT_EQ(finding(cpu, "memory").state, HealthState::Warning);  // of the limit, not the machine
}

TEST(WhySlow, TellsTheLargestShareFirstAndLeavesOutWhatIsNoCause) {
  const auto gpu = well_gpu();
  EXPECT_EQ(why_slow(gpu, {{ClockEvent::SwPowerCap, 0.62}}), "power cap 62 % of the last minute");
  const auto both = why_slow(gpu, {{ClockEvent::SwPowerCap, 0.1},
                                   {ClockEvent::HwThermal, 0.3},
                                   {ClockEvent::GpuIdle, 0.6},
                                   {ClockEvent::SwThermal, 0.004}});
  EXPECT_LT(both.find("30 %"), both.find("10 %"));
  EXPECT_EQ(both.find("60 %"), std::string::npos);
  EXPECT_EQ(both.find(" 0 %"), std::string::npos);
  EXPECT_EQ(why_slow(gpu, {{ClockEvent::GpuIdle, 1.0}}), "");
  auto down = gpu;
  down.is_up = false;
  EXPECT_EQ(why_slow(down, {{ClockEvent::SwPowerCap, 1.0}}), "");
}

}  // namespace
}  // namespace muster

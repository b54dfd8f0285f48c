#include "hw/amd/amd_metrics.h"

#include <gtest/gtest.h>

#include <string>

#include "base/file.h"
#include "spec/reading.h"

namespace muster {
namespace {

// Tables written by tools/fixtures/amd_machines.py, which lays them out by the kernel's fields.
std::string table(const char* version) {
  return *read_file(std::filesystem::path(MUSTER_SOURCE_DIR "/src/hw/corpus/amd_metrics_fuzz") /
                    version);
}

Result<AmdMetrics> parsed(const std::string& bytes) {
  return parse_gpu_metrics(std::as_bytes(std::span(bytes)));
}

std::uint32_t bits(std::initializer_list<ClockEvent> events) {
  std::uint32_t all = 0;
  for (const auto event : events) all |= static_cast<std::uint32_t>(event);
  return all;
}

TEST(ParseGpuMetrics, ReadsEveryVersionOfTheInstinctCards) {
  for (const auto* version : {"v1_4", "v1_5", "v1_6", "v1_7", "v1_8"}) {
    const auto metrics = parsed(table(version));
    ASSERT_TRUE(metrics) << version << ": " << metrics.error().message;
    EXPECT_FALSE(metrics->is_apu) << version;
    EXPECT_DOUBLE_EQ(metrics->activity.value_or(-1), 0.97) << version;
    EXPECT_DOUBLE_EQ(metrics->memory_activity.value_or(-1), 0.41) << version;
    EXPECT_EQ(metrics->power_now, 612.0) << version;
    EXPECT_EQ(metrics->energy_joules, 1000.0) << version << ": 65,536,000 of 2^-16 J";
    EXPECT_EQ(metrics->clock_graphics, 2.1e9) << version << ": the mean of three dies";
    EXPECT_EQ(metrics->clock_memory, 1.3e9) << version;
    EXPECT_EQ(metrics->clock_video, 0.8e9) << version;
    EXPECT_EQ(metrics->xgmi_read_bytes, 28'000.0 * 1024) << version << ": 1,000 + … + 7,000 KiB";
    EXPECT_EQ(metrics->xgmi_written_bytes, 7'000.0 * 1024) << version;
    EXPECT_EQ(metrics->pcie_replays, 7.0) << version;
    EXPECT_EQ(metrics->firmware_seconds, 3.0) << version;
    EXPECT_FALSE(metrics->throttle) << version;
    EXPECT_FALSE(metrics->power_average) << version;
  }
}

TEST(ParseGpuMetrics, TellsHowLongTheFirmwareHeldTheClock) {
  EXPECT_FALSE(parsed(table("v1_5"))->residencies);
  for (const auto* version : {"v1_6", "v1_7", "v1_8"}) {
    const auto found = parsed(table(version))->residencies;
    ASSERT_TRUE(found) << version;
    EXPECT_EQ(found->steps, 5000U) << version;
    EXPECT_EQ(found->power, 200U) << version;
    EXPECT_EQ(found->thermal, 60U) << version << ": socket, regulators, memory";
    EXPECT_EQ(found->hot_signal, 1U) << version;
  }
  const auto apu = parsed(table("v3_0"))->residencies;
  ASSERT_TRUE(apu);
  EXPECT_FALSE(apu->steps);
  EXPECT_EQ(apu->power, 15U);
  EXPECT_EQ(apu->thermal, 24U);
  EXPECT_EQ(apu->hot_signal, 3U);
}

TEST(ParseGpuMetrics, TellsTheActivityOfEachPartition) {
  for (const auto* version : {"v1_6", "v1_7", "v1_8"}) {
    const auto metrics = parsed(table(version));
    ASSERT_EQ(metrics->partition_activity.size(), 2U) << version;
    EXPECT_DOUBLE_EQ(metrics->partition_activity[0].value_or(-1), 0.85) << version;
    EXPECT_DOUBLE_EQ(metrics->partition_activity[1].value_or(-1), 0.20) << version;
  }
}

TEST(ParseGpuMetrics, ReadsRadeonCardsAndTheirThrottleBits) {
  for (const auto* version : {"v1_1", "v1_2", "v1_3"}) {
    const auto metrics = parsed(table(version));
    ASSERT_TRUE(metrics) << version;
    EXPECT_DOUBLE_EQ(metrics->activity.value_or(-1), 0.97) << version;
    EXPECT_EQ(metrics->power_average, 55.0) << version;
    EXPECT_EQ(metrics->clock_graphics, 2.0e9) << version;
    EXPECT_FALSE(metrics->energy_joules) << version << ": its unit differs";
  }
  EXPECT_FALSE(parsed(table("v1_2"))->throttle);
  EXPECT_EQ(parsed(table("v1_3"))->throttle, 1ULL | 1ULL << 36 | 1ULL << 47);
}

TEST(ParseGpuMetrics, TakesOfApusOnlyWhatHasAUnit) {
  for (const auto* version : {"v2_1", "v2_2", "v2_3"}) {
    const auto metrics = parsed(table(version));
    ASSERT_TRUE(metrics) << version;
    EXPECT_TRUE(metrics->is_apu) << version;
    EXPECT_FALSE(metrics->activity) << version;
    EXPECT_FALSE(metrics->power_average) << version;
  }
  EXPECT_FALSE(parsed(table("v2_1"))->throttle);
  EXPECT_TRUE(parsed(table("v2_2"))->throttle);
  for (const auto* version : {"v2_4", "v3_0"}) {
    const auto metrics = parsed(table(version));
    ASSERT_TRUE(metrics) << version;
    EXPECT_DOUBLE_EQ(metrics->activity.value_or(-1), 0.97) << version;
    EXPECT_DOUBLE_EQ(metrics->power_average.value_or(-1), 30.0) << version << ": graphics alone";
    EXPECT_DOUBLE_EQ(metrics->socket_power.value_or(-1), 55.0) << version;
    EXPECT_EQ(metrics->clock_graphics, 2.0e9) << version;
    EXPECT_EQ(metrics->clock_video, 0.8e9) << version;
  }
}

TEST(ParseGpuMetrics, TakesAllOnesAndMoreThanAllAsNotTold) {
  auto bytes = table("v1_4");
  bytes[12] = bytes[13] = '\xff';  // average_gfx_activity
  bytes[14] = 101;                 // average_umc_activity, in percent
  const auto metrics = parsed(bytes);
  ASSERT_TRUE(metrics);
  EXPECT_FALSE(metrics->activity);
  EXPECT_FALSE(metrics->memory_activity);
}

TEST(ParseGpuMetrics, RefusesWhatIsCutOffOrUnknown) {
  EXPECT_EQ(parsed("abc").error().message, "gpu_metrics ends within its header: 3 bytes");
  auto bytes = table("v1_4");
  EXPECT_EQ(parsed(bytes.substr(0, 287)).error().message,
            "gpu_metrics v1.4 of 288 bytes has another size: it says 288, 287 came");
  EXPECT_EQ(parsed(bytes.substr(0, 287)).error().kind, ErrorKind::Corrupt);
  bytes[3] = 9;
  EXPECT_EQ(parsed(bytes).error().message, "gpu_metrics of an unknown version: v1.9");
  EXPECT_EQ(parsed(bytes).error().kind, ErrorKind::Unsupported);
}

TEST(ClockEventsOf, BringsThrottleBitsToTheSameReasons) {
  EXPECT_EQ(clock_events_of(0), 0U);
  EXPECT_EQ(clock_events_of(1ULL << 6), bits({ClockEvent::SwPowerCap})) << "SPPT";
  EXPECT_EQ(clock_events_of(1ULL << 36), bits({ClockEvent::SwThermal})) << "TEMP_HOTSPOT";
  EXPECT_EQ(clock_events_of(1ULL << 47), bits({ClockEvent::HwThermal})) << "PROCHOT_GFX";
  EXPECT_EQ(clock_events_of(1ULL | 1ULL << 32 | 1ULL << 44),
            bits({ClockEvent::SwPowerCap, ClockEvent::SwThermal, ClockEvent::HwThermal}));
  EXPECT_EQ(clock_events_of(1ULL << 57), 0U) << "FIT: no reason that a reader could act on";
}

}  // namespace
}  // namespace muster

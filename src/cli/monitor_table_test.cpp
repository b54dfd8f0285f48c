#include "cli/monitor_table.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TelemetrySnapshot of_two() {
  TelemetrySnapshot snapshot;
  auto& gpu = snapshot.devices.emplace_back();
  gpu.name = "cuda:0";
  gpu.is_up = true;
  gpu.readings.set(Reading::GpuUtilization, 0.5);
  gpu.readings.set(Reading::GpuMemoryUsed, 98.4e9);
  auto& cpu = snapshot.devices.emplace_back();
  cpu.name = "cpu:0";
  cpu.is_up = true;
  cpu.readings.set(Reading::CpuUtilization, 0.25);
  cpu.readings.set(Reading::CpuMemoryAvailable, 19.0882e9);
  cpu.readings.set(Reading::CpuFrequency, 3.7e9);
  return snapshot;
}

constexpr TerminalInfo kTerminal{.is_terminal = true, .width = 80, .height = 24};

// 8 + 2 + 6 columns, then 2 + 17, 2 + 21 and 2 + 17 make 77: no other name fits.
constexpr const char* kTitles =
    "time      device  utilization_ratio  cpu_utilization_ratio  memory_used_bytes\n";
constexpr const char* kMoment =
    "14:02:31  cuda:0               0.50                      -            98.4 GB\n"
    "14:02:31  cpu:0                   -                   0.25                  -\n";

TEST(MonitorTable, HasALineForEachDeviceUnderTheNamesOfReadings) {
  MonitorTable table({}, kTerminal);
  EXPECT_EQ(table.lines(of_two(), "14:02:31"), std::string(kTitles) + kMoment);
  EXPECT_EQ(table.lines(of_two(), "14:02:31"), kMoment) << "the titles are still in sight";
}

TEST(MonitorTable, RepeatsTitlesBeforeTheyScrollAway) {
  auto terminal = kTerminal;
  terminal.height = 6;
  MonitorTable table({}, terminal);
  EXPECT_EQ(table.lines(of_two(), "14:02:31").find("time"), 0U);  // three lines of six
  EXPECT_NE(table.lines(of_two(), "14:02:32").find("time"), 0U);  // five
  EXPECT_EQ(table.lines(of_two(), "14:02:33").find("time"), 0U);
}

TEST(MonitorTable, ShowsWhatIsAskedForInItsOrder) {
  MonitorTable table({Reading::CpuFrequency, Reading::GpuPowerInstant, Reading::GpuUtilization},
                     kTerminal);
  EXPECT_EQ(table.lines(of_two(), "14:02:31"),
            "time      device  cpu_frequency_hertz  utilization_ratio\n"
            "14:02:31  cuda:0                    -               0.50\n"
            "14:02:31  cpu:0                  3.7G                  -\n")
      << "no device has a power reading";
}

TEST(MonitorTable, SaysWhyADeviceIsDown) {
  auto snapshot = of_two();
  snapshot.devices[0].is_up = false;
  snapshot.devices[0].down_reason = "GPU is lost (NVML 15)";
  MonitorTable table({Reading::CpuUtilization}, kTerminal);
  EXPECT_NE(table.lines(snapshot, "14:02:31").find("cuda:0  down: GPU is lost (NVML 15)\n"),
            std::string::npos);
}

TEST(MonitorTable, IsNoWiderThanTheTerminal) {
  for (std::size_t width = 30; width < 140; ++width) {
    auto terminal = kTerminal;
    terminal.width = width;
    MonitorTable table({}, terminal);
    const auto text = table.lines(of_two(), "14:02:31");
    EXPECT_LE(text.find('\n'), width);
  }
}

TEST(ReadingValueText, HasNoExponent) {
  EXPECT_EQ(reading_value_text(Reading::CpuMemoryAvailable, 19.0882e9), "19.1 GB");
  EXPECT_EQ(reading_value_text(Reading::CpuFrequency, 3.7e9), "3.7G");
  EXPECT_EQ(reading_value_text(Reading::GpuEnergy, 12345678.9), "12,345,679");
  EXPECT_EQ(reading_value_text(Reading::GpuUtilization, 0.29), "0.29");
  EXPECT_EQ(reading_value_text(Reading::GpuPowerInstant, 626.25), "626.2");
  EXPECT_EQ(reading_value_text(Reading::GpuTemperatureCore, 52), "52");
}

TEST(MonitorLine, CutsNothingAndRoundsNothing) {
  EXPECT_EQ(monitor_line(of_two().devices[1], {Reading::CpuMemoryAvailable}),
            "cpu:0  cpu_memory_available_bytes=19088200000\n");
  EXPECT_EQ(monitor_line(of_two().devices[1], {}),
            "cpu:0  cpu_utilization_ratio=0.25  cpu_memory_available_bytes=19088200000\n")
      << "the frequency is a slow reading";
}

}  // namespace
}  // namespace muster

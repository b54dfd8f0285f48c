#include "cli/monitor_csv.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster {
namespace {

TEST(MonitorCsv, HasAColumnForEachReadingThatWasAskedForInTheOrderOfTheTable) {
  EXPECT_EQ(csv_header({Reading::GpuEnergy, Reading::GpuPowerInstant}),
            "time,device,power_instant_watts,energy_joules\n");
  const auto all = csv_header({});
  EXPECT_EQ(static_cast<std::size_t>(std::count(all.begin(), all.end(), ',')),
            1 + reading_table().size());
}

TEST(MonitorCsv, HasALineForEachDeviceAndNothingWhereNothingIsKnown) {
  TelemetrySnapshot snapshot;
  snapshot.unix_seconds = 1700000000.25;
  snapshot.devices.resize(2);
  snapshot.devices[0].name = "cuda:0";
  snapshot.devices[0].readings.set(Reading::GpuPowerInstant, 626.25);
  snapshot.devices[0].readings.set(Reading::GpuEnergy, 12345678.5);
  snapshot.devices[1].name = "a, \"b\"";
  snapshot.devices[1].readings.set(Reading::GpuEnergy, 0);
  EXPECT_EQ(csv_lines(snapshot, {Reading::GpuPowerInstant, Reading::GpuEnergy}),
            "1700000000.250,cuda:0,626.25,12345678.5\n"
            "1700000000.250,\"a, \"\"b\"\"\",,0\n");
}

}  // namespace
}  // namespace muster

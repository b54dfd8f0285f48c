#include "cli/monitor_report.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

// Two looks at a CPU: 20 and 40 % busy, 2 and 3 of 8 GB in use.
CommandUse of_a_cpu() {
  CommandUse use;
  use.wall_seconds = 2;
  use.own = ProcessUse{.user_seconds = 1, .system_seconds = 0.5, .peak_memory_bytes = 90'000'000};
  auto& device = use.devices.emplace_back();
  device.identity.device.kind = DeviceKind::Cpu;
  device.name = "cpu:0";
  for (const double part : {1.0, 2.0}) {
    DeviceSample sample;
    sample.readings.set(Reading::CpuUtilization, 0.2 * part);
    sample.readings.set(Reading::CpuMemorySize, 8e9);
    sample.readings.set(Reading::CpuMemoryAvailable, 7e9 - 1e9 * part);
    device.use.add(sample);
  }
  device.energy.missing_reason = "there is no energy counter";
  return use;
}

TEST(CommandUseText, NamesEveryNumber) {
  EXPECT_EQ(command_use_text(of_a_cpu(), {.width = 200}),
            "2.000 s; the command itself: CPU 1.000 s user, 0.500 s system (75 % of a core), "
            "memory 90.0 MB at most, storage 0 B read, 0 B written\n"
            "the devices meanwhile, with all that ran on them (p95: 95 % are below)\n"
            "device  reading    min  mean  p95  max\n"
            "cpu:0   busy %      20    30   40   40\n"
            "        memory GB  2.0   2.5  3.0  3.0\n"
            "cpu:0: no energy: there is no energy counter\n");
}

TEST(CommandUseText, BreaksNoWordOnANarrowTerminal) {
  EXPECT_TRUE(command_use_text(of_a_cpu(), {.width = 60})
                  .starts_with("2.000 s; the command itself: CPU 1.000 s user, 0.500 s\n"
                               "  system (75 % of a core), memory 90.0 MB at most, storage 0\n"
                               "  B read, 0 B written\n"));
}

}  // namespace
}  // namespace muster

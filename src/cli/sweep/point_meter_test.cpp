#include "cli/sweep/point_meter.h"

#include <gtest/gtest.h>

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

// A driver that shows no process, or none of this container, has not shown that nobody is there.
TEST(ExclusiveUse, IsNotToldWhereProcessesCannotBeSeen) {
  const auto alone = device_with({{.pid = kOwn}});
  EXPECT_EQ(exclusive_use({alone, device_with({})}, {kOwn}), std::nullopt);
  EXPECT_EQ(exclusive_use({device_with({{.pid = kOwn}, {.pid = 0}})}, {kOwn}), std::nullopt);
  EXPECT_EQ(exclusive_use({}, {kOwn}), std::nullopt);
}

}  // namespace
}  // namespace muster

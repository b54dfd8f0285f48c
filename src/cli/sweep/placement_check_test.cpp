#include "cli/sweep/placement_check.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

const std::vector<Device> kDevices{{.kind = DeviceKind::Cuda, .index = 0},
                                   {.kind = DeviceKind::Cuda, .index = 1},
                                   {.kind = DeviceKind::Cpu, .index = 0}};
const std::vector<std::string> kRequested{"cuda:0", "cuda:1", "cuda:7", "cpu:0"};

TEST(LimitsOf, AreOfThePointsOwnDevices) {
  const auto limits = limits_of("1=20GB,cuda:0=1KB,cuda:7=1KB", "p", kRequested, kDevices);
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(*limits, (MemoryLimits{{"cuda:0", 1'000}, {"cuda:1", 20'000'000'000}}));
  EXPECT_EQ(*limits_of("", "p", kRequested, kDevices), MemoryLimits());
  // A slice goes by both of its numbers, and not by its own alone.
  const std::vector<Device> slice{{.kind = DeviceKind::Cuda, .index = 1, .slice = 0}};
  EXPECT_EQ(*limits_of("1:0=1KB", "p", {"cuda:1:0"}, slice), (MemoryLimits{{"cuda:1:0", 1'000}}));
  EXPECT_FALSE(limits_of("0=1KB", "p", {"cuda:1:0"}, slice));
}

// Else the one that comes first would have the limit, or the limit that comes last would count.
TEST(LimitsOf, AreRefusedWhereTheyCanBeReadInTwoWays) {
  const auto refusal = [](const std::string& text) {
    const auto limits = limits_of(text, "b.yaml:3: backend.max_memory", kRequested, kDevices);
    EXPECT_FALSE(limits) << text;
    return limits ? "" : limits.error().message;
  };
  EXPECT_EQ(refusal("0=1KB"),
            "b.yaml:3: backend.max_memory: 0 is one of cuda:0, cpu:0: write its whole name");
  EXPECT_EQ(refusal("1=2KB,cuda:1=1KB"), "b.yaml:3: backend.max_memory: cuda:1 has two limits");
  EXPECT_EQ(refusal("3=1KB"),
            "b.yaml:3: backend.max_memory: no device 3 in backend.device_ids, which are cuda:0, "
            "cuda:1, cuda:7, cpu:0");
}

TEST(MemoryFaults, NameTheDevicesThatHeldTooMuch) {
  const MemoryLimits limits{{"cuda:0", 100}, {"cuda:1", 100}, {"cuda:2", 100}};
  EXPECT_EQ(memory_faults(limits, {{"cuda:0", 100}, {"cuda:1", 2'000'000'000}}),
            std::vector<std::string>{"cuda:1 held 2.00 GB, and max_memory allows 100 B"});
  EXPECT_TRUE(memory_faults({}, {{"cuda:0", 100}}).empty());
}

}  // namespace
}  // namespace muster

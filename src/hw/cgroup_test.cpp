#include "hw/cgroup.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

const std::filesystem::path kMachines = MUSTER_SOURCE_DIR "/src/hw/testdata";

TEST(ReadCgroupLimits, TakesTheTightestAncestorOfVersion2) {
  // The process's own group says "max"; its parent has 8 GiB and 150 ms of every 100 ms.
  const auto limits = read_cgroup_limits(kMachines / "container_v2");
  EXPECT_EQ(limits.memory_bytes, 8ULL << 30);
  // 3 GiB are used, of which 1 GiB is page cache that can go.
  EXPECT_EQ(limits.memory_available_bytes, 6ULL << 30);
  ASSERT_TRUE(limits.cpu_cores);
  EXPECT_DOUBLE_EQ(*limits.cpu_cores, 1.5);
}

TEST(ReadCgroupLimits, FollowsAVersion1MountThatShowsOnlyTheContainer) {
  const auto limits = read_cgroup_limits(kMachines / "container_v1");
  EXPECT_EQ(limits.memory_bytes, 4ULL << 30);
  EXPECT_EQ(limits.memory_available_bytes, (4ULL << 30) - (1ULL << 30) + (256ULL << 20));
  ASSERT_TRUE(limits.cpu_cores);
  EXPECT_DOUBLE_EQ(*limits.cpu_cores, 2.0);
}

TEST(ReadCgroupLimits, KnowsHowVersion1WritesNoLimit) {
  const auto limits = read_cgroup_limits(kMachines / "unlimited_v1");
  EXPECT_FALSE(limits.memory_bytes);
  EXPECT_FALSE(limits.memory_available_bytes);
  EXPECT_FALSE(limits.cpu_cores);
}

TEST(ReadCgroupLimits, LimitsNothingWhereThereIsNoProc) {
  const auto limits = read_cgroup_limits(kMachines / "no such machine");
  EXPECT_FALSE(limits.memory_bytes);
  EXPECT_FALSE(limits.cpu_cores);
}

}  // namespace
}  // namespace muster

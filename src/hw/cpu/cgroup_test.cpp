#include "hw/cpu/cgroup.h"

#include <gtest/gtest.h>

#include "hw/testdata/tree.h"

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

// One machine of version 2 with groups "/a" and "/a/b" of 8 and 4 GiB.
void write_nested(const TestTree& tree, const char* self, const char* mount_root) {
  tree.write("proc/self/cgroup", std::string("0::") + self + "\n");
  tree.write("proc/self/mountinfo",
             std::string("30 24 0:26 ") + mount_root + " /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  tree.write("sys/fs/cgroup/a/memory.max", "8589934592\n");
  tree.write("sys/fs/cgroup/a/memory.current", "6442450944\n");
  tree.write("sys/fs/cgroup/a/memory.stat", "inactive_file_x 5\ninactive_file 0\n");
  tree.write("sys/fs/cgroup/a/b/memory.max", "4294967296\n");
  tree.write("sys/fs/cgroup/a/b/memory.current", "1073741824\n");
  tree.write("sys/fs/cgroup/a/b/memory.swap.max", "0\n");
}

TEST(ReadCgroupLimits, TakesLimitAndRestFromDifferentAncestors) {
  const TestTree tree;
  write_nested(tree, "/a/b", "/");
  const auto limits = read_cgroup_limits(tree.root());
  EXPECT_EQ(limits.memory_bytes, 4ULL << 30) << "of b";
  EXPECT_EQ(limits.memory_available_bytes, 2ULL << 30) << "of a, where the others have taken 6";
}

TEST(ReadCgroupLimits, PassesOverTheGroupsOfOthers) {
  const TestTree tree;
  write_nested(tree, "/a2", "/a");  // the mount shows "/a", which is no ancestor of "/a2"
  tree.write("sys/fs/cgroup/memory.max", "1048576\n");
  EXPECT_FALSE(read_cgroup_limits(tree.root()).memory_bytes);
}

TEST(ReadCgroupLimits, KnowsAMountThatBeginsAboveItsNamespace) {
  const TestTree tree;
  write_nested(tree, "/", "/..");
  tree.write("sys/fs/cgroup/memory.max", "1048576\n");
  EXPECT_EQ(read_cgroup_limits(tree.root()).memory_bytes, 1U << 20) << "an ancestor of its group";
}

TEST(ReadCgroupLimits, TakesTheLimitOfHiddenAncestorsFromVersion1) {
  const TestTree tree;
  tree.write("proc/self/cgroup", "4:memory:/docker/abc\n");
  tree.write("proc/self/mountinfo", "40 30 0:33 /docker/abc /cg ro - cgroup cgroup rw,memory\n");
  tree.write("cg/memory.limit_in_bytes", "9223372036854771712\n");
  tree.write("cg/memory.usage_in_bytes", "1073741824\n");
  tree.write(
      "cg/memory.stat",
      "inactive_file 7\nhierarchical_memory_limit 3221225472\ntotal_inactive_file 536870912\n");
  const auto limits = read_cgroup_limits(tree.root());
  EXPECT_EQ(limits.memory_bytes, 3ULL << 30);
  // 3 GiB less 1 GiB in use, of which half is cache.
  EXPECT_EQ(limits.memory_available_bytes, (2ULL << 30) + (512ULL << 20));
}

class CgroupMemoryTest : public testing::Test {
 protected:
  std::filesystem::path write_groups() const {
    write_nested(tree, "/a/b", "/");
    return tree.root();
  }

  const TestTree tree;
  CgroupMemory memory{write_groups()};
  CountingWatch watch;
  DeviceSample sample;
};

TEST_F(CgroupMemoryTest, SeesTheNextValueInTheSameFiles) {
  memory.read_limits(watch, sample);
  EXPECT_EQ(memory.read(watch, sample).memory_available_bytes, 2ULL << 30);
  tree.write("sys/fs/cgroup/a/memory.current", "1073741824\n");
  EXPECT_EQ(memory.read(watch, sample).memory_available_bytes, 3ULL << 30) << "of b now";
  EXPECT_EQ(sample.call_count, 10U) << "two limits, and stat and usage of two groups, twice";
}

TEST_F(CgroupMemoryTest, SeesANewLimitWhenLimitsAreReadAgain) {
  memory.read_limits(watch, sample);
  const auto before = memory.read(watch, sample).memory_bytes;
  tree.write("sys/fs/cgroup/a/memory.max", "1610612736\n");
  EXPECT_EQ(memory.read(watch, sample).memory_bytes, before);
  memory.read_limits(watch, sample);
  EXPECT_EQ(memory.read(watch, sample).memory_bytes, 3ULL << 29);
}

TEST_F(CgroupMemoryTest, DoesNotReadTheUseOfGroupsWithoutALimit) {
  tree.write("sys/fs/cgroup/a/memory.max", "max\n");
  tree.write("sys/fs/cgroup/a/b/memory.max", "max\n");
  memory.read_limits(watch, sample);
  EXPECT_FALSE(memory.read(watch, sample).memory_bytes);
  EXPECT_EQ(sample.call_count, 2U) << "the limits";
}

TEST(ReadCgroupLimits, LimitsNothingWhereThereIsNoProc) {
  const auto limits = read_cgroup_limits(kMachines / "no such machine");
  EXPECT_FALSE(limits.memory_bytes);
  EXPECT_FALSE(limits.cpu_cores);
}

}  // namespace
}  // namespace muster

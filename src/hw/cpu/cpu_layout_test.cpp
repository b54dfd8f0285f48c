#include "hw/cpu/cpu_layout.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Cores = std::vector<std::vector<std::uint32_t>>;

TEST(ReadCpuLayout, GroupsHyperthreadsByCoreAndCoresByNode) {
  // Two nodes of two cores with two threads: hwloc numbers the CPUs in that order.
  const auto nodes = read_cpu_layout("numa:2 core:2 pu:2", {0, 1, 2, 3, 4, 5, 6, 7});
  ASSERT_TRUE(nodes) << nodes.error().message;
  ASSERT_EQ(nodes->size(), 2U);
  EXPECT_EQ((*nodes)[0].cores, (Cores{{0, 1}, {2, 3}}));
  EXPECT_EQ((*nodes)[1].cores, (Cores{{4, 5}, {6, 7}}));
  EXPECT_EQ((*nodes)[1].os_index, 1U);
}

TEST(ReadCpuLayout, LeavesOutWhatTheMaskForbids) {
  const auto nodes = read_cpu_layout("numa:2 core:2 pu:2", {5, 6, 7});
  ASSERT_TRUE(nodes);
  ASSERT_EQ(nodes->size(), 1U);
  EXPECT_EQ((*nodes)[0].os_index, 1U);
  EXPECT_EQ((*nodes)[0].cores, (Cores{{5}, {6, 7}}));
}

TEST(ReadCpuLayout, GivesCoresThatTwoNodesShareToOneOfThem) {
  // Two memories (say HBM and DDR) above the same two cores.
  const auto nodes = read_cpu_layout("[numa] [numa] core:2 pu:1", {0, 1});
  ASSERT_TRUE(nodes) << nodes.error().message;
  ASSERT_EQ(nodes->size(), 1U);
  EXPECT_EQ((*nodes)[0].cores, (Cores{{0}, {1}}));
}

TEST(ReadCpuLayout, ReadsThisMachine) {
  const auto cpus = affinity_cpus();
  ASSERT_TRUE(cpus);
  ASSERT_FALSE(cpus->empty());
  const auto nodes = read_cpu_layout("", *cpus);
  ASSERT_TRUE(nodes) << nodes.error().message;
  std::size_t count = 0;
  for (const auto& node : *nodes) {
    for (const auto& core : node.cores) count += core.size();
  }
  EXPECT_EQ(count, cpus->size());
}

TEST(ReadCpuLayout, RefusesAMaskWithoutCpus) {
  const auto nodes = read_cpu_layout("numa:1 core:1 pu:1", {7});
  ASSERT_FALSE(nodes);
  EXPECT_EQ(nodes.error().kind, ErrorKind::Unavailable);
}

TEST(KeepCores, DropsTheLastOnesAndTheEmptyNodes) {
  std::vector<NumaNode> nodes{{.cores = {{0}, {1}}}, {.cores = {{2}, {3}}}};
  keep_cores(nodes, 3);
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[1].cores, (Cores{{2}}));
  keep_cores(nodes, 1);
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes[0].cores, (Cores{{0}}));
}

}  // namespace
}  // namespace muster

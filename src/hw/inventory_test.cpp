#include "hw/inventory.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

const std::filesystem::path kMachines = MUSTER_SOURCE_DIR "/src/hw/testdata";

MachineSources machine(const char* name, const char* topology, std::vector<std::uint32_t> cpus) {
  return {.root = kMachines / name,
          .topology = topology,
          .allowed_cpus = std::move(cpus),
          .nvml_libraries = {MUSTER_BINARY_DIR "/lib/libfakenvml.so"}};
}

TEST(FindInventory, KeepsToTheCgroup) {
  const auto found =
      find_inventory(machine("container_v2", "numa:2 core:2 pu:2", {0, 1, 2, 3, 4, 5, 6, 7}));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->cpu_model, "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz");
  EXPECT_EQ(found->memory_total_bytes, 32874616ULL * 1024);
  EXPECT_EQ(found->memory_limit_bytes, 8ULL << 30);
  EXPECT_EQ(found->memory_available_bytes, 6ULL << 30) << "less than the machine has left";
  EXPECT_EQ(found->core_count, 4U);
  EXPECT_EQ(found->numa_node_count, 2U);
  // A quota of 1.5 cores keeps two lanes, both on the first node, one on each core.
  ASSERT_EQ(found->cpus.size(), 1U);
  EXPECT_EQ(found->cpus[0].cpus, (std::vector<std::uint32_t>{0, 2}));
  ASSERT_EQ(found->gpus.size(), 1U) << "the stand-in driver's own";
  EXPECT_FALSE(found->gpu_absent_reason);
}

TEST(FindInventory, MakesADeviceOfEachNode) {
  auto sources = machine("unlimited_v1", "numa:2 core:2 pu:1", {0, 1, 2, 3});
  sources.look_for_gpus = false;
  const auto found = find_inventory(sources);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->cpus.size(), 2U);
  EXPECT_EQ(found->cpus[1].name(), "cpu:1");
  EXPECT_EQ(found->cpus[1].cpus, (std::vector<std::uint32_t>{2, 3}));
  EXPECT_FALSE(found->memory_limit_bytes);
  EXPECT_EQ(found->memory_available_bytes, 9000000ULL * 1024) << "no cgroup says otherwise";
  EXPECT_TRUE(found->gpus.empty());
  EXPECT_TRUE(found->gpu_absent_reason);
}

TEST(FindInventory, ReadsThisMachine) {
  const auto found = find_inventory();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_GE(found->core_count, 1U);
  EXPECT_GT(found->memory_total_bytes, 0U);
  EXPECT_FALSE(found->cpus.empty());
  EXPECT_EQ(found->gpus.empty(), found->gpu_absent_reason.has_value());
}

}  // namespace
}  // namespace muster

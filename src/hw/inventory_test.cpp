#include "hw/inventory.h"

#include <gtest/gtest.h>

#include <fstream>

namespace muster {
namespace {

const std::filesystem::path kMachines = MUSTER_SOURCE_DIR "/src/hw/testdata";

MachineSources machine(const char* name, const char* topology, std::vector<std::uint32_t> cpus) {
  return {.root = kMachines / name, .topology = topology, .allowed_cpus = std::move(cpus)};
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
}

TEST(FindInventory, MakesADeviceOfEachNode) {
  const auto found = find_inventory(machine("unlimited_v1", "numa:2 core:2 pu:1", {0, 1, 2, 3}));
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->cpus.size(), 2U);
  EXPECT_EQ(found->cpus[1].name(), "cpu:1");
  EXPECT_EQ(found->cpus[1].cpus, (std::vector<std::uint32_t>{2, 3}));
  EXPECT_FALSE(found->memory_limit_bytes);
  EXPECT_EQ(found->memory_available_bytes, 9000000ULL * 1024) << "no cgroup says otherwise";
  EXPECT_TRUE(found->gpus.empty());
}

TEST(FindStandins, AreThoseOfTheLibraryBesideTheWorker) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "standins";
  std::filesystem::create_directories(folder);
  EXPECT_TRUE(find_standins(folder / "muster-worker").empty());
  std::ofstream(folder / "libmuster-standin.so").flush();
  const auto found = find_standins(folder / "muster-worker");
  ASSERT_EQ(found.size(), 8U);
  EXPECT_EQ(found[7].name(), "standin:7");
  std::filesystem::remove_all(folder);
}

TEST(FindInventory, ReadsThisMachine) {
  const auto found = find_inventory();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_GE(found->core_count, 1U);
  EXPECT_GT(found->memory_total_bytes, 0U);
  EXPECT_FALSE(found->cpus.empty());
}

}  // namespace
}  // namespace muster

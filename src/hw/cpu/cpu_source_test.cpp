#include <gtest/gtest.h>

#include <cerrno>

#include "hw/cpu/cpu_load.h"
#include "hw/cpu/host_memory.h"
#include "hw/device_sources.h"
#include "hw/testdata/tree.h"

namespace muster {
namespace {

Device cpu(std::uint32_t index, std::vector<std::uint32_t> cpus) {
  Device device;
  device.kind = DeviceKind::Cpu;
  device.index = index;
  device.cpus = std::move(cpus);
  return device;
}

DeviceSample visit(DeviceSampler& sampler) {
  CountingWatch watch;
  DeviceSample sample;
  sampler.sample(all_tiers(), watch, sample);
  return sample;
}

// Two sockets of one node and two logical CPUs each.
void write_two_sockets(const TestTree& tree) {
  tree.write("proc/stat",
             "cpu  400 0 0 4000 0 0 0 0 0 0\n"
             "cpu0 100 0 0 1000 0 0 0 0 50 0\n"
             "cpu1 100 0 0 1000 0 0 0 0 0 0\n"
             "cpu2 100 0 0 1000 0 0 0 0 0 0\n"
             "cpu3 100 0 0 1000 0 0 0 0 0 0\n"
             "intr 12345\n");
  tree.write("proc/meminfo", "MemTotal: 4096 kB\nMemFree: 1024 kB\nMemAvailable: 2048 kB\n");
  for (const int i : {0, 1, 2, 3}) {
    const auto folder = "sys/devices/system/cpu/cpu" + std::to_string(i);
    const auto node = std::to_string(i / 2);
    tree.write(folder + "/node" + node + "/cpulist", "");
    tree.write(folder + "/topology/physical_package_id", node + "\n");
    tree.write(folder + "/cpufreq/scaling_cur_freq", std::to_string(1000000 * (i + 1)) + "\n");
    tree.write("sys/devices/system/node/node" + node + "/meminfo",
               "Node " + node + " MemTotal: 2048 kB\nNode " + node + " MemFree: 512 kB\n");
    tree.write("sys/class/powercap/intel-rapl:" + node + "/name", "package-" + node + "\n");
    tree.write("sys/class/powercap/intel-rapl:" + node + "/energy_uj", "1000000\n");
    tree.write("sys/class/powercap/intel-rapl:" + node + "/max_energy_range_uj", "65532610987\n");
  }
}

TEST(OpenCpu, TellsLoadBetweenTwoVisitsAndNoneAtTheFirst) {
  const TestTree tree;
  write_two_sockets(tree);
  Inventory inventory;
  inventory.cpus = {cpu(0, {0, 1}), cpu(1, {2, 3})};
  const auto source = open_cpu(inventory, tree.root());
  ASSERT_EQ(source.samplers.size(), 2U);
  const auto first = visit(*source.samplers[0]);
  EXPECT_FALSE(first.readings.has(Reading::CpuUtilization));
  EXPECT_TRUE(first.core_loads.empty());
  EXPECT_TRUE(first.errors.empty());
  // cpu0: 30 of 40 new ticks busy, 10 waiting for input; cpu1: 10 stolen and 10 irq of 100.
  tree.write("proc/stat",
             "cpu  400 0 0 4000 0 0 0 0 0 0\n"
             "cpu0 120 5 5 1000 10 0 0 0 60 0\n"
             "cpu1 100 0 0 1080 0 10 0 10 0 0\n");
  const auto second = visit(*source.samplers[0]);
  ASSERT_EQ(second.core_loads.size(), 2U);
  EXPECT_FLOAT_EQ(second.core_loads[0], 0.75F);
  EXPECT_FLOAT_EQ(second.core_loads[1], 0.2F);
  EXPECT_DOUBLE_EQ(second.readings.get(Reading::CpuUtilization).value_or(-1), 50.0 / 140.0);
}

TEST(OpenCpu, ReadsFrequencyMemoryAndEnergyOfItsOwnNode) {
  const TestTree tree;
  write_two_sockets(tree);
  Inventory inventory;
  inventory.cpus = {cpu(0, {0, 1}), cpu(1, {2, 3})};
  const auto source = open_cpu(inventory, tree.root());
  visit(*source.samplers[1]);
  tree.write("sys/class/powercap/intel-rapl:1/energy_uj", "3500000\n");
  const auto sample = visit(*source.samplers[1]);
  EXPECT_EQ(source.samplers[1]->identity().numa_node, 1U);
  EXPECT_EQ(sample.readings.get(Reading::CpuFrequency), 3.5e9) << "the mean of 3 and 4 GHz";
  EXPECT_EQ(sample.readings.get(Reading::CpuMemorySize), 2048.0 * 1024);
  EXPECT_EQ(sample.readings.get(Reading::CpuMemoryFree), 512.0 * 1024);
  EXPECT_DOUBLE_EQ(sample.readings.get(Reading::CpuEnergyPackage).value_or(-1), 2.5);
  EXPECT_FALSE(sample.readings.has(Reading::CpuEnergyDram));
  EXPECT_FALSE(sample.readings.has(Reading::HostMemorySize)) << "cpu:0 carries it";
  const auto first = visit(*source.samplers[0]);
  EXPECT_EQ(first.readings.get(Reading::HostMemorySize), 4096.0 * 1024);
  EXPECT_EQ(first.readings.get(Reading::HostMemoryAvailable), 2048.0 * 1024);
  EXPECT_FALSE(first.readings.has(Reading::HostMemoryLimit));
}

TEST(OpenCpu, TellsTheEnergyOfASharedSocketOnce) {
  const TestTree tree;
  write_two_sockets(tree);
  for (const int i : {2, 3}) {
    tree.write("sys/devices/system/cpu/cpu" + std::to_string(i) + "/topology/physical_package_id",
               "0\n");
  }
  Inventory inventory;
  inventory.cpus = {cpu(0, {0, 1}), cpu(1, {2, 3})};
  const auto source = open_cpu(inventory, tree.root());
  EXPECT_TRUE(visit(*source.samplers[0]).readings.has(Reading::CpuEnergyPackage));
  EXPECT_FALSE(visit(*source.samplers[1]).readings.has(Reading::CpuEnergyPackage));
}

TEST(OpenCpu, KeepsToTheCgroupAndItsPageCache) {
  Inventory inventory;
  inventory.cpus = {cpu(0, {0})};
  const auto source =
      open_cpu(inventory, std::filesystem::path(MUSTER_SOURCE_DIR "/src/hw/testdata/container_v2"));
  const auto sample = visit(*source.samplers[0]);
  EXPECT_EQ(sample.readings.get(Reading::HostMemoryLimit), 8.0 * (1ULL << 30));
  EXPECT_EQ(sample.readings.get(Reading::HostMemoryAvailable), 6.0 * (1ULL << 30));
  EXPECT_EQ(sample.readings.get(Reading::CpuMemorySize), 32874616.0 * 1024) << "the machine's";
}

TEST(OpenCpu, NamesWhatFailed) {
  const TestTree tree;  // no /proc at all
  Inventory inventory;
  inventory.cpus = {cpu(0, {0})};
  const auto source = open_cpu(inventory, tree.root());
  const auto sample = visit(*source.samplers[0]);
  EXPECT_EQ(sample.readings.count(), 0U);
  std::size_t loads = 0;
  for (const auto& error : sample.errors) {
    EXPECT_EQ(error.code, ENOENT);
    if (error.reading == Reading::CpuUtilization) ++loads;
  }
  EXPECT_EQ(loads, 1U);
}

TEST(OpenCpu, TakesTheFrequencyOfCpuinfoWhereThereIsNoOther) {
  const TestTree tree;
  tree.write("proc/cpuinfo",
             "processor\t: 0\ncpu MHz\t\t: 2000.500\n\nprocessor\t: 1\ncpu MHz\t\t: 9.0\n\n"
             "processor\t: 2\ncpu MHz\t\t: 3000.500\n");
  Inventory inventory;
  inventory.cpus = {cpu(0, {0, 2})};
  const auto source = open_cpu(inventory, tree.root());
  EXPECT_EQ(visit(*source.samplers[0]).readings.get(Reading::CpuFrequency), 2500.5e6);
}

TEST(LoadBetween, LeavesOutWhatWasOfflineAndWhatFell) {
  const std::vector<std::optional<CpuTicks>> before{CpuTicks{10, 10}, std::nullopt, CpuTicks{5, 9}};
  const std::vector<std::optional<CpuTicks>> after{CpuTicks{20, 20}, CpuTicks{1, 1},
                                                   CpuTicks{9, 8}};
  const auto load = load_between(before, after);
  EXPECT_TRUE(load.cores.empty()) << "cpu 1 has none";
  // 10 of 20, and 4 of 4 where the idle ticks fell.
  EXPECT_DOUBLE_EQ(load.mean.value_or(-1), 14.0 / 24.0);
}

TEST(MeminfoBytes, ReadsOnlyTheLineOfThatName) {
  EXPECT_EQ(meminfo_bytes("MemFree: 1 kB\nMemTotal:  16 kB\n", "MemTotal"), 16384U);
  EXPECT_EQ(meminfo_bytes("Node 3 MemTotal:  2 kB", "MemTotal"), 2048U);
  EXPECT_FALSE(meminfo_bytes("SwapMemTotal: 2 kB\nMemTotal: much\n", "MemTotal"));
  EXPECT_FALSE(meminfo_bytes("", "MemTotal"));
}

}  // namespace
}  // namespace muster

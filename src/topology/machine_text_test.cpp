#include "topology/machine_text.h"

#include <gtest/gtest.h>

#include "topology/machine_builder.h"
#include "topology/machine_here.h"

namespace muster {
namespace {

TEST(ParseMachine, MakesNodesOfTheGpusThatItCounts) {
  const auto machine = parse_machine("sim:4xA10G-24G+2xL4-24G");
  ASSERT_TRUE(machine) << machine.error().message;
  ASSERT_EQ(machine->devices.size(), 6U);
  ASSERT_EQ(machine->nodes.size(), 1U);
  EXPECT_EQ(machine->classes.size(), 2U);
  EXPECT_EQ(machine->classes[machine->devices[3].device_class].model, "A10G-24G");
  EXPECT_EQ(machine->classes[machine->devices[4].device_class].model, "L4-24G");
  EXPECT_EQ(machine->devices[5].name(), "cuda:5");
  // nvidia-smi shows 23034 MiB for an L4.
  EXPECT_EQ(machine->devices[5].free_bytes, 23034ULL << 20);
  EXPECT_EQ(machine->nodes[0].host_bytes, 0U);
  EXPECT_FALSE(machine->network_bytes_per_second);
  EXPECT_EQ(machine->node_links[0].between(0, 5).kind, LinkKind::Phb);
}

TEST(ParseMachine, KeepsOneTableOfLinksForEqualNodes) {
  const auto machine = parse_machine("sim:1250x8xH100-80G");
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(machine->devices.size(), 10'000U);
  EXPECT_EQ(machine->nodes.size(), 1'250U);
  ASSERT_EQ(machine->node_links.size(), 1U);
  EXPECT_EQ(machine->node_links[0].links.size(), 64U);
  EXPECT_EQ(machine->node_links[0].between(0, 7).kind, LinkKind::NvLink);
  EXPECT_EQ(machine->devices.back().node, 1'249U);
  EXPECT_EQ(machine->devices.back().name(), "cuda:9999");
  EXPECT_EQ(machine->network_bytes_per_second, 12e9) << "NCCL's 100 Gbit/s";
}

TEST(ParseMachine, PutsCountedNodesBesideTheOneThatIsNot) {
  const auto machine = parse_machine("sim:2x8xH100+4xL4+1xT4,host=64GB");
  ASSERT_TRUE(machine) << machine.error().message;
  ASSERT_EQ(machine->nodes.size(), 3U);
  EXPECT_EQ(machine->nodes[2].device_count, 5U);
  EXPECT_EQ(machine->nodes[2].first_device, 16U);
  EXPECT_EQ(machine->nodes[1].host_bytes, 64'000'000'000U);
}

// Eight MI300X have a link between every two: 64 GB/s in one direction.
TEST(ParseMachine, KnowsTheMeshOfABoard) {
  const auto machine = parse_machine("sim:8xMI300X");
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(machine->devices[0].name(), "rocm:0");
  EXPECT_EQ(machine->node_links[0].between(0, 7).kind, LinkKind::Xgmi);
  EXPECT_DOUBLE_EQ(machine->node_links[0].between(0, 7).bytes_per_second, 64e9);
}

TEST(ParseMachine, SaysWhatIsWrongAndWhatWouldBeRight) {
  struct Case {
    const char* text;
    ErrorKind kind;
    const char* message;
  };
  for (const auto& [text, kind, message] :
       {Case{"8xH100-80G", ErrorKind::InvalidArgument,
             "not a machine like sim:[NODESx]COUNTxGPU[+…][,host=BYTES][,network=BYTES]: "
             "8xH100-80G"},
        Case{"sim:8xH100-81G", ErrorKind::NotFound,
             "no such GPU is known: H100-81G: did you mean H100-80G?"},
        Case{"sim:0xT4", ErrorKind::InvalidArgument, "a machine has 1 to 100,000 devices: 0xT4"},
        Case{"sim:8x", ErrorKind::InvalidArgument,
             "a GPU is missing behind the count: "
             "sim:[NODESx]COUNTxGPU[+…][,host=BYTES][,network=BYTES]"},
        Case{"sim:300xT4", ErrorKind::InvalidArgument,
             "a node has at most 256 devices; write NODESxCOUNTxGPU: 300xT4-16G"},
        Case{"sim:100000x8xT4", ErrorKind::InvalidArgument,
             "a machine has at most 100,000 devices"},
        Case{"sim:8xT4,host=64gb", ErrorKind::InvalidArgument,
             "not a number of bytes like 64GB or 64GiB: 64gb"},
        Case{"sim:8xT4,ram=64GB", ErrorKind::InvalidArgument,
             "neither host= nor network=: ram=64GB"},
        Case{"sim:2xL4,1xT4,host=64GB", ErrorKind::InvalidArgument,
             "GPUs of several kinds are joined by \"+\"; did you mean: "
             "sim:2xL4+1xT4,host=64GB"},
        Case{"sim:99999999999999999999xT4", ErrorKind::InvalidArgument,
             "a machine has 1 to 100,000 devices: 99999999999999999999xT4"}}) {
    const auto machine = parse_machine(text);
    ASSERT_FALSE(machine) << text;
    EXPECT_EQ(machine.error().kind, kind) << text;
    EXPECT_EQ(machine.error().message, message);
  }
}

TEST(MachineFrom, TakesTheGpusWithWhatTheDriverSaysIsFree) {
  Inventory inventory;
  inventory.memory_total_bytes = 64ULL << 30;
  inventory.memory_available_bytes = 48ULL << 30;
  Device known;
  known.kind = DeviceKind::Cuda;
  known.model = "NVIDIA H200";
  known.uuid = "GPU-1";
  known.memory_total_bytes = 150754820096;
  known.memory_free_bytes = 150000000000;
  auto unknown = known;
  unknown.index = 1;
  unknown.model = "NVIDIA X1";
  unknown.uuid = "GPU-2";
  unknown.memory_free_bytes.reset();
  inventory.gpus = {known, unknown};
  const auto machine = machine_from(inventory);
  ASSERT_EQ(machine.devices.size(), 2U);
  EXPECT_EQ(machine.devices[0].free_bytes, 150000000000U);
  EXPECT_EQ(machine.devices[1].free_bytes, 150754820096U);
  EXPECT_EQ(machine.classes[0].flops_per_second, 989.5e12);
  EXPECT_EQ(machine.classes[1].model, "NVIDIA X1");
  EXPECT_FALSE(machine.classes[1].flops_per_second) << "no figure is made up";
  EXPECT_EQ(machine.nodes[0].host_bytes, 48ULL << 30);
  EXPECT_EQ(machine.node_links[0].between(0, 1).kind, LinkKind::Sys) << "none was read";

  LinkMatrix links{2, {{LinkKind::Self, 0}, {LinkKind::NvLink, 4}, {LinkKind::NvLink, 4}, {}}};
  links.labels[3].kind = LinkKind::Self;
  EXPECT_EQ(machine_from(inventory, &links).node_links[0].between(0, 1).kind, LinkKind::NvLink);
  EXPECT_EQ(machine_from(inventory, &links).node_links[0].between(0, 1).width, 4U);
  links.device_count = 1;
  EXPECT_EQ(machine_from(inventory, &links).node_links[0].between(0, 1).kind, LinkKind::Sys)
      << "they are another machine's";
}

TEST(MachineFrom, PromisesUnifiedMemoryOnce) {
  Inventory inventory;
  inventory.memory_total_bytes = 16ULL << 30;
  inventory.memory_available_bytes = 10ULL << 30;
  Device apu;
  apu.kind = DeviceKind::Rocm;
  apu.model = "AMD GPU 1002:1586";
  apu.memory_total_bytes = 8ULL << 30;
  apu.memory_free_bytes = 6ULL << 30;
  apu.has_unified_memory = true;
  inventory.gpus = {apu};
  const auto machine = machine_from(inventory);
  EXPECT_EQ(machine.devices[0].free_bytes, 6ULL << 30);
  EXPECT_EQ(machine.nodes[0].host_bytes, 4ULL << 30) << "of 10 GiB";
  // A container that may use 4 GiB gives its GPU no more, and nothing is left to offload to.
  inventory.memory_available_bytes = 4ULL << 30;
  const auto limited = machine_from(inventory);
  EXPECT_EQ(limited.devices[0].free_bytes, 4ULL << 30);
  EXPECT_EQ(limited.nodes[0].host_bytes, 0U);
  inventory.gpus[0].has_unified_memory = false;
  EXPECT_EQ(machine_from(inventory).nodes[0].host_bytes, 4ULL << 30) << "its own memory";
}

TEST(MachineFrom, SharesTheHostAmongItsCpusAndCountsItOnce) {
  Inventory inventory;
  inventory.memory_total_bytes = 96ULL << 30;
  inventory.memory_available_bytes = 48ULL << 30;
  Device cpu;
  cpu.model = "AMD EPYC";
  cpu.cpus = {0, 1, 2, 3};
  cpu.memory_total_bytes = 64ULL << 30;
  auto small = cpu;
  small.index = 1;
  small.memory_total_bytes = 32ULL << 30;
  inventory.cpus = {cpu, small};
  const auto machine = machine_from(inventory);
  ASSERT_EQ(machine.devices.size(), 2U);
  EXPECT_EQ(machine.devices[0].name(), "cpu:0");
  EXPECT_EQ(machine.devices[0].core_count, 4U);
  EXPECT_EQ(machine.devices[0].free_bytes, 32ULL << 30);
  EXPECT_EQ(machine.devices[1].free_bytes, 16ULL << 30);
  EXPECT_EQ(machine.nodes[0].host_bytes, 0U);
}

}  // namespace
}  // namespace muster

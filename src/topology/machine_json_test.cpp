#include "topology/machine_json.h"

#include <gtest/gtest.h>

#include "topology/machine_text.h"

namespace muster {
namespace {

void expect_same(const Machine& a, const Machine& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.network_bytes_per_second, b.network_bytes_per_second);
  EXPECT_EQ(a.host_link_bytes_per_second, b.host_link_bytes_per_second);
  ASSERT_EQ(a.classes.size(), b.classes.size());
  for (std::size_t i = 0; i < a.classes.size(); ++i) {
    EXPECT_EQ(a.classes[i].model, b.classes[i].model);
    EXPECT_EQ(a.classes[i].kind, b.classes[i].kind);
    EXPECT_EQ(a.classes[i].memory_bytes, b.classes[i].memory_bytes);
    EXPECT_EQ(a.classes[i].flops_per_second, b.classes[i].flops_per_second);
    EXPECT_EQ(a.classes[i].memory_bytes_per_second, b.classes[i].memory_bytes_per_second);
  }
  ASSERT_EQ(a.devices.size(), b.devices.size());
  for (std::size_t i = 0; i < a.devices.size(); ++i) {
    EXPECT_EQ(a.devices[i].name(), b.devices[i].name());
    EXPECT_EQ(a.devices[i].device_class, b.devices[i].device_class);
    EXPECT_EQ(a.devices[i].node, b.devices[i].node);
    EXPECT_EQ(a.devices[i].core_count, b.devices[i].core_count);
    EXPECT_EQ(a.devices[i].free_bytes, b.devices[i].free_bytes);
    EXPECT_EQ(a.devices[i].uuid, b.devices[i].uuid);
    EXPECT_EQ(a.devices[i].parent, b.devices[i].parent);
  }
  ASSERT_EQ(a.nodes.size(), b.nodes.size());
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    EXPECT_EQ(a.nodes[i].first_device, b.nodes[i].first_device);
    EXPECT_EQ(a.nodes[i].device_count, b.nodes[i].device_count);
    EXPECT_EQ(a.nodes[i].links, b.nodes[i].links);
    EXPECT_EQ(a.nodes[i].host_bytes, b.nodes[i].host_bytes);
  }
  ASSERT_EQ(a.node_links.size(), b.node_links.size());
  for (std::size_t i = 0; i < a.node_links.size(); ++i) {
    ASSERT_EQ(a.node_links[i].links.size(), b.node_links[i].links.size());
    for (std::size_t j = 0; j < a.node_links[i].links.size(); ++j) {
      EXPECT_EQ(a.node_links[i].links[j].kind, b.node_links[i].links[j].kind);
      EXPECT_EQ(a.node_links[i].links[j].width, b.node_links[i].links[j].width);
      EXPECT_EQ(a.node_links[i].links[j].bytes_per_second,
                b.node_links[i].links[j].bytes_per_second);
    }
  }
}

TEST(MachineJson, ReadsBackWhatItWrote) {
  for (const auto* text : {"sim:1250x8xH100-80G,network=50GB",
                           "sim:2x8xA100-80G+4xL4+2xT4,host=1GB", "sim:RTX4090", "sim:8xMI300X"}) {
    SCOPED_TRACE(text);
    auto machine = *parse_machine(text);
    const auto written = machine_json(machine);
    const auto read = parse_machine_json("m.json", written);
    ASSERT_TRUE(read) << read.error().message;
    expect_same(machine, *read);
    EXPECT_EQ(machine_json(*read), written);
  }
  auto machine = *parse_machine("sim:4xA30");
  machine.devices[0].uuid = "MIG-1";
  machine.devices[0].parent = "GPU-1";
  machine.devices[1].uuid = "MIG-2";
  machine.devices[1].parent = "GPU-1";
  machine.devices[2].core_count = 4;
  const auto read = parse_machine_json("m.json", machine_json(machine));
  ASSERT_TRUE(read) << read.error().message;
  expect_same(machine, *read);
}

TEST(MachineJson, TakesAPrintedMatrixAndWhatItAlreadyKnows) {
  const std::string text =
      R"({"muster_machine": 1, "nodes": [{"devices": [{"model": "RTX3090", "count": 2}], )"
      R"("links": "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n"}, )"
      R"({"devices": [{"model": "mine", "free_bytes": 7}, {"model": "L4"}], "links": "PIX:5e9"}], )"
      R"("classes": [{"model": "mine", "memory_bytes": 9}]})";
  const auto machine = parse_machine_json("m.json", text);
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(machine->name, "m.json");
  // Four links of 12 GB/s, as NCCL counts them for compute capability 8.6.
  EXPECT_DOUBLE_EQ(machine->node_links[0].between(0, 1).bytes_per_second, 48e9);
  EXPECT_DOUBLE_EQ(machine->node_links[1].between(0, 1).bytes_per_second, 5e9);
  EXPECT_EQ(machine->devices[2].free_bytes, 7U);
  EXPECT_FALSE(machine->classes[machine->devices[2].device_class].flops_per_second);
}

TEST(MachineJson, EveryKindIsReadByItsName) {
  for (int i = 0; i <= static_cast<int>(kDeviceKindLast); ++i) {
    const auto kind = static_cast<DeviceKind>(i);
    const auto text = R"({"muster_machine": 1, "nodes": [{"devices": [{"model": "m"}]}], )"
                      R"("classes": [{"model": "m", "memory_bytes": 9, "kind": ")" +
                      std::string(device_kind_name(kind)) + R"("}]})";
    const auto machine = parse_machine_json("m.json", text);
    ASSERT_TRUE(machine) << machine.error().message;
    EXPECT_EQ(machine->classes[machine->devices[0].device_class].kind, kind);
  }
}

TEST(MachineJson, NamesWhatIsWrong) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const auto& [text, message] :
       {Case{"[]", "m.json: not a JSON object"}, Case{"{", "m.json: not a JSON object"},
        Case{R"({"nodes": []})", "m.json: muster_machine must be 1, the version of the format"},
        Case{R"({"muster_machine": 1})", "m.json: nodes must be a list"},
        Case{R"({"muster_machine": 1, "nodes": []})",
             "m.json: nodes must be a list with at least one device"},
        Case{R"({"muster_machine": 1, "node": []})",
             "m.json: unknown key node: did you mean nodes?"},
        Case{R"({"muster_machine": 1, "nodes": [3]})", "m.json: node 0: not a JSON object"},
        Case{R"({"muster_machine": 1, "nodes": [], "classes": [{"model": "m", "kind": "gpu"}]})",
             "m.json: class 0: kind must be cpu, cuda, rocm, mps, sim or standin"},
        Case{R"({"muster_machine": 1, "nodes": [{"devices": [{"model": "L5-24G"}]}]})",
             "no such GPU is known: L5-24G: did you mean L4-24G?"},
        Case{R"({"muster_machine": 1, "nodes": [{"devices": [{"model": "L4", "count": -1}]}]})",
             "m.json: node 0 device 0: count must be a whole number of 1 to 256"},
        Case{R"({"muster_machine": 1, "nodes": [{"devices": [{"model": "L4", "count": 2}], )"
             R"("links": ["X PIX", "SYS X"]}]})",
             "m.json: node 0: links must be the same in both directions"},
        Case{R"({"muster_machine": 1, "nodes": [{"devices": [{"model": "L4"}], "links": "PIXX"}]})",
             "m.json: node 0: links must be of X, NV12, XGMI1, PIX, PXB, PHB, NODE or SYS, with X "
             "on the diagonal"},
        Case{R"({"muster_machine": 1, "nodes": [{"devices": [{"model": "L4", "count": 2}], )"
             R"("links": "X"}]})",
             "m.json: node 0: links must be of X, NV12, XGMI1, PIX, PXB, PHB, NODE or SYS, with X "
             "on the diagonal"},
        Case{
            R"({"muster_machine": 1, "nodes": [{"devices": [{"model": "L4"}], "count": 2000000}]})",
            "m.json: node 0: count must be a whole number of 1 to 100000"}}) {
    const auto machine = parse_machine_json("m.json", text);
    ASSERT_FALSE(machine) << text;
    EXPECT_EQ(machine.error().message, message);
  }
}

// A short text must not ask for gigabytes: 256 devices have 65,536 links, all nodes differ.
TEST(MachineJson, RefusesTooManyKindsOfLinks) {
  std::string text = R"({"muster_machine": 1, "nodes": [)";
  for (int i = 1; i <= 64; ++i) {
    text += R"({"devices": [{"model": "L4", "count": 256}], "links": "PIX:)" + std::to_string(i) +
            R"("},)";
  }
  text.back() = ']';
  const auto machine = parse_machine_json("m.json", text + "}");
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().message,
            "a machine has nodes of at most 1,000 kinds, with 4,000,000 links in all");
}

}  // namespace
}  // namespace muster

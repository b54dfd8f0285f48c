#include "planner/parallel/parallel_degree.h"

#include <gtest/gtest.h>

#include <numeric>

#include "planner/memory/memory_fixture.h"
#include "topology/machine_text.h"

namespace muster {
namespace {

ModelShape decoder(std::uint32_t heads, std::uint32_t kv_heads, std::uint32_t wide = 14336) {
  LayerShape layer;
  layer.head_count = heads;
  layer.kv_head_count = kv_heads;
  layer.head_size = 128;
  layer.intermediate_size = wide;
  ModelShape shape;
  shape.layers.assign(2, layer);
  return shape;
}

std::vector<std::uint32_t> all_of(const Machine& machine) {
  std::vector<std::uint32_t> devices(machine.devices.size());
  std::iota(devices.begin(), devices.end(), 0U);
  return devices;
}

using Degrees = std::vector<std::uint32_t>;
using Groups = std::vector<DeviceGroup>;

TEST(LegalTensorDegrees, DivideHeadsKvHeadsAndWidth) {
  EXPECT_EQ(legal_tensor_degrees(decoder(32, 8), 8), (Degrees{1, 2, 4, 8}));
  // More ranks than KV heads: each is copied to two.
  EXPECT_EQ(legal_tensor_degrees(decoder(32, 8), 16), (Degrees{1, 2, 4, 8, 16}));
  // Qwen2.5-7B: 28 heads, 4 KV heads, 18944 wide.
  EXPECT_EQ(legal_tensor_degrees(decoder(28, 4, 18944), 8), (Degrees{1, 2, 4}));
  // Falcon-7B: 71 heads, a prime number.
  EXPECT_EQ(legal_tensor_degrees(decoder(71, 1, 18176), 8), (Degrees{1}));
  // 12 heads and 4 KV heads: 6 divides the heads, but not the KV heads, nor they it.
  EXPECT_EQ(legal_tensor_degrees(decoder(12, 4, 12288), 6), (Degrees{1, 2, 4}));
}

TEST(LegalTensorDegrees, AreOneForEncoders) {
  EXPECT_EQ(legal_tensor_degrees(encoder_shape("bert", 2, 384, 12, 1536), 8), (Degrees{1}));
}

TEST(PaddedVocab, IsAMultipleOf64AndOfTheRanks) {
  EXPECT_EQ(padded_vocab(32'000, 8), 32'000U);
  EXPECT_EQ(padded_vocab(50'257, 2), 50'304U);
  EXPECT_EQ(padded_vocab(50'257, 3), 50'304U);  // 64 x 3 = 192, 262 of them
  EXPECT_EQ(padded_vocab(1, 128), 128U);
}

TEST(TensorGroups, StayInANodeAndAmongEqualDevices) {
  const auto machine = *parse_machine("sim:2x4xH100+4xA10G+2xL4");
  EXPECT_EQ(tensor_groups(machine, all_of(machine), 4),
            (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}}));
  EXPECT_EQ(tensor_groups(machine, all_of(machine), 2).size(), 7U);
  EXPECT_TRUE(tensor_groups(machine, all_of(machine), 8).empty());
}

TEST(TensorGroups, LeaveSlicesOut) {
  auto machine = *parse_machine("sim:4xA100-80G");
  machine.devices[1].parent = "GPU-1";
  machine.devices[2].parent = "GPU-1";
  EXPECT_EQ(tensor_groups(machine, all_of(machine), 2), (Groups{{0, 3}}));
  EXPECT_EQ(tensor_groups(machine, all_of(machine), 1).size(), 4U);
}

TEST(CheckTensorDegree, RefusesWithTheDegreesThatAreLegal) {
  const auto machine = *parse_machine("sim:2x8xH100");
  const auto devices = all_of(machine);
  const auto message = [&](const ModelShape& shape, std::uint32_t degree) {
    const auto status = check_tensor_degree(shape, machine, devices, degree);
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(message(decoder(32, 8), 8), "");
  EXPECT_EQ(message(decoder(32, 8), 3), "3 does not divide the 32 attention heads: 1, 2, 4, 8 do");
  EXPECT_EQ(message(decoder(12, 4, 12288), 6),
            "6 does not divide the 4 KV heads, nor is a multiple of them: 1, 2, 4 do");
  EXPECT_EQ(message(decoder(8, 8, 1001), 2),
            "2 does not divide the feed-forward width 1001: 1 does");
  EXPECT_EQ(message(decoder(32, 8), 16),
            "16 does not fit into a node or island, of which the largest has 8 equal devices: "
            "1, 2, 4, 8 do");
  EXPECT_EQ(message(decoder(32, 8), 0), "0 divides nothing: 1, 2, 4, 8 do");
}

TEST(CheckTensorDegree, RefusesSlices) {
  auto machine = *parse_machine("sim:2xA100-80G");
  for (auto& device : machine.devices) device.parent = "GPU-1";
  const auto status = check_tensor_degree(decoder(32, 8), machine, all_of(machine), 2);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "slices of GPUs cannot work on one layer together, and cuda:0 is one: 1 does");
}

}  // namespace
}  // namespace muster

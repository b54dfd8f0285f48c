#include "serving/decoder_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "coordinator/decoder_fixture.h"

namespace muster {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

Machine machine_of(std::vector<std::uint64_t> free_mib) {
  Machine machine;
  machine.classes.push_back({.model = "CPU", .kind = DeviceKind::Cpu, .memory_bytes = 0});
  for (const auto free : free_mib) {
    machine.devices.push_back({.kind = DeviceKind::Cpu, .free_bytes = free * kMiB});
  }
  return machine;
}

// The class has no size of its own here, so a plan's margin, a share of that, is nothing.
TEST(DecoderMemory, ADeviceHasWhatWasFreeLessWhatIsPlanned) {
  std::vector<Device> devices(2);
  const DeviceMemory memory(machine_of({3000, 1000}), devices);
  EXPECT_EQ(memory.room(0, 0, std::nullopt), 3000 * kMiB);
  EXPECT_EQ(memory.room(0, 2000 * kMiB, std::nullopt), 1000 * kMiB);
  EXPECT_EQ(memory.room(0, 4000 * kMiB, std::nullopt), 0U);
  // Of 2,000 MiB that the host has now, three quarters are the first one's share.
  EXPECT_EQ(memory.room(0, 0, 2000 * kMiB), 1500 * kMiB);
  EXPECT_EQ(memory.room(1, 800 * kMiB, 2000 * kMiB), 200 * kMiB) << "less than its share";
}

TEST(DecoderMemory, AMarginIsKept) {
  auto machine = machine_of({1000});
  machine.classes.front().memory_bytes = 2000 * kMiB;  // 5 % of it: 100 MiB
  const DeviceMemory memory(machine, std::vector<Device>(1));
  EXPECT_EQ(memory.room(0, 0, std::nullopt), 900 * kMiB);
}

TEST(DecoderMemory, WhatIsNotKnownIsNotMadeUp) {
  const DeviceMemory unknown({}, std::vector<Device>(1));
  EXPECT_EQ(unknown.room(0, 0, 1000 * kMiB), std::nullopt);
  std::vector<Device> gpu(1);
  gpu.front().kind = DeviceKind::Cuda;
  EXPECT_EQ(DeviceMemory(machine_of({1000}), gpu).room(0, 0, std::nullopt), std::nullopt);
}

// The host's memory beside GPUs is shared by the server's CPUs.
TEST(DecoderMemory, CpusBesideGpusShareTheHost) {
  auto machine = machine_of({16'000});
  machine.classes.front().kind = DeviceKind::Cuda;
  machine.devices.front().kind = DeviceKind::Cuda;
  machine.nodes.push_back({.device_count = 1, .host_bytes = 2000 * kMiB});
  std::vector<Device> devices(3);
  devices.front().kind = DeviceKind::Cuda;
  const DeviceMemory memory(machine, devices);
  EXPECT_EQ(memory.room(1, 0, std::nullopt), 950 * kMiB) << "5 % are kept";
}

// Its class has no size here either. What the host has now is no matter.
TEST(DecoderMemory, AGpuHasWhatIsFreeOnIt) {
  auto machine = machine_of({16'000});
  machine.classes.front().kind = DeviceKind::Cuda;
  machine.devices.front().kind = DeviceKind::Cuda;
  machine.nodes.push_back({.device_count = 1, .host_bytes = 2000 * kMiB});
  std::vector<Device> devices(2);
  devices.front().kind = DeviceKind::Cuda;
  const DeviceMemory memory(machine, devices);
  EXPECT_EQ(memory.room(0, 0, std::nullopt), 16'000 * kMiB);
  EXPECT_EQ(memory.room(0, 6'000 * kMiB, 100 * kMiB), 10'000 * kMiB);
  devices.front().index = 1;
  EXPECT_EQ(DeviceMemory(machine, devices).room(0, 0, std::nullopt), std::nullopt) << "another one";
}

// By hand from decoder_fixture.cpp: 32 values a row; 48 rows of the table, which is the head too; a
// layer has 32 x 32 (query) + 2 x 16 x 32 (key, value) + 32 x 32 (output) + 3 x 48 x 32
// (feed-forward) and two norms of 32; one more norm at the end.
TEST(DecoderMemory, WeightsAreCountedInThePrecisionThatTheyAreKeptIn) {
  const auto folder =
      std::filesystem::path(testing::TempDir()) / ("decoder_memory." + std::to_string(::getpid()));
  write_counting_decoder(folder);
  constexpr std::uint64_t kLayer = 32 * 32 + 2 * 16 * 32 + 32 * 32 + 3 * 48 * 32 + 2 * 32;
  constexpr std::uint64_t kWeights = 48 * 32 + 2 * kLayer + 32;
  const auto fp32 = decoder_demand(folder, DecoderPrecision::Fp32, 128);
  ASSERT_TRUE(fp32) << fp32.error().message;
  EXPECT_EQ(fp32->weights_bytes, 4 * kWeights);
  EXPECT_GT(fp32->work_bytes, 0U);
  EXPECT_EQ(fp32->logits_bytes, 4U * 48 * (32 + 32)) << "32 that choose, and 32 ids of prompts";
  const auto bf16 = decoder_demand(folder, DecoderPrecision::Bf16, 128);
  ASSERT_TRUE(bf16);
  EXPECT_EQ(bf16->weights_bytes, 2 * kWeights);
  // 34 bytes for 32 weights of a row, or for what is left of them: rows of 48 are two blocks.
  constexpr std::uint64_t kLayerRows = 32 + 2 * 16 + 32 + 2 * 48;
  constexpr std::uint64_t kInt8 =
      34 * (48 + 2 * (kLayerRows + 2 * 32)) + sizeof(float) * (2 * 2 * 32 + 32);
  const auto int8 = decoder_demand(folder, DecoderPrecision::Int8, 128);
  ASSERT_TRUE(int8);
  EXPECT_EQ(int8->weights_bytes, kInt8);
  EXPECT_FALSE(decoder_demand(folder / "none", DecoderPrecision::Own, 128));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace muster

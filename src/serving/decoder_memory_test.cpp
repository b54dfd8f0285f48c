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

class CountingDecoderMemory : public testing::Test {
 protected:
  CountingDecoderMemory() { write_counting_decoder(folder_, kLength); }
  ~CountingDecoderMemory() override { std::filesystem::remove_all(folder_); }

  static constexpr std::uint32_t kLength = 32768;

  // By hand from decoder_fixture.cpp: 32 values a row; 48 rows of the table; a layer has 32 x 32
  // (query) + 2 x 16 x 32 (key, value) + 32 x 32 (output) + 3 x 48 x 32 (feed-forward) and two
  // norms of 32; one more norm at the end. All outputs are multiples of 16.
  static constexpr std::uint64_t kTable = 48 * 32;
  static constexpr std::uint64_t kLayer = 32 * 32 + 2 * 16 * 32 + 32 * 32 + 3 * 48 * 32;
  static constexpr std::uint64_t kNorms = 2 * 2 * 32 + 32;
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("decoder_memory." + std::to_string(::getpid()));
};

// The table is the head too, which is packed beside it; the config states no type, so that it
// stands in float32. A norm has a weight and a bias.
TEST_F(CountingDecoderMemory, WeightsAreCountedInThePrecisionThatTheyAreKeptIn) {
  constexpr std::uint64_t kBeside = 4 * kTable + 8 * kNorms;
  const auto fp32 = decoder_demand(folder_, DecoderPrecision::Fp32, 128);
  ASSERT_TRUE(fp32) << fp32.error().message;
  EXPECT_EQ(fp32->weights_bytes, 4 * (2 * kLayer + kTable) + kBeside);
  EXPECT_EQ(fp32->logits_bytes, 4U * 48 * (32 + 32)) << "32 that choose, and 32 ids of prompts";
  const auto bf16 = decoder_demand(folder_, DecoderPrecision::Bf16, 128);
  ASSERT_TRUE(bf16);
  EXPECT_EQ(bf16->weights_bytes, 2 * (2 * kLayer + kTable) + kBeside);
  // 64 bytes and a scale of 4 for up to 64 weights of a row.
  constexpr std::uint64_t kLayerRows = 32 + 2 * 16 + 32 + 2 * 48;
  const auto int8 = decoder_demand(folder_, DecoderPrecision::Int8, 128);
  ASSERT_TRUE(int8);
  EXPECT_EQ(int8->weights_bytes, 68 * (48 + 2 * (kLayerRows + 32)) + kBeside);
  EXPECT_FALSE(decoder_demand(folder_ / "none", DecoderPrecision::Own, 128));
}

// A row of the 512 of a step: the state of 32, 64 queries, keys and values, 2 x 4 cosines and
// sines; and 32, 32 and 48 that products read, in each form of theirs, the second also in float32,
// as a head of 8 is no whole block. Each thread has six rows of 1.5 x 128 positions, and one
// of them six of 128 while it grows; room for gate and up of 128 rows and 80 columns; for what
// attention gives of 24 rows; and it chooses a token by 16 bytes for each of the vocabulary.
TEST_F(CountingDecoderMemory, AStepIsWhatTheEngineAllocates) {
  const auto work = [&](DecoderPrecision precision, const DecoderPlace& place) {
    const auto demand = decoder_demand(folder_, precision, 128, place);
    return demand ? demand->work_bytes : 0;
  };
  constexpr std::uint64_t kBeside = 4 * 6 * (192 + 128) + 16 * 48;
  constexpr std::uint64_t kRoom = 128 * 80 * 2 * 4 + 24 * 8 * 4;
  constexpr std::uint64_t kFp32 = 4 * (512 * (104 + 112) + 64 * 32) + kBeside + kRoom;
  constexpr std::uint64_t kNarrow = 4 * 512 * (104 + 32) + kBeside + kRoom;
  EXPECT_EQ(work(DecoderPrecision::Fp32, {}), kFp32);
  EXPECT_EQ(work(DecoderPrecision::Bf16, {}), kNarrow + 2 * (512 * 112 + 64 * 32));
  // A byte for each of 64, and two numbers.
  EXPECT_EQ(work(DecoderPrecision::Int8, {}), kNarrow + 512 * 3 * 72 + 64 * 72);
  EXPECT_EQ(work(DecoderPrecision::Own, {}), kFp32) << "in the file's own bits";
  EXPECT_EQ(work(DecoderPrecision::Fp32, {.threads = 3}),
            kFp32 + 2 * (4 * 6 * 192 + kRoom + 16 * 48));
}

TEST_F(CountingDecoderMemory, AGpuHasEveryWeightOnce) {
  const auto bf16 =
      decoder_demand(folder_, DecoderPrecision::Bf16, 128, {.device = DeviceKind::Cuda});
  ASSERT_TRUE(bf16);
  EXPECT_EQ(bf16->weights_bytes, 2 * (2 * kLayer + kTable + kNorms));
  EXPECT_GT(bf16->work_bytes, 0U);
}

// 32 MiB of cuBLAS, 1 MiB of cuBLASLt and 457 MiB of the driver (docs/memory-model.md). The
// stand-in has no driver.
TEST_F(CountingDecoderMemory, AGpuHasAContextAndWorkspaces) {
  const auto demand = [&](DeviceKind device) {
    return decoder_demand(folder_, DecoderPrecision::Bf16, 128, {.device = device});
  };
  const auto gpu = demand(DeviceKind::Cuda);
  const auto standin = demand(DeviceKind::Standin);
  ASSERT_TRUE(gpu);
  ASSERT_TRUE(standin);
  EXPECT_EQ(gpu->work_bytes, standin->work_bytes + (32 + 1 + 457) * kMiB);
  EXPECT_EQ(gpu->total(), standin->total() + (32 + 1 + 457) * kMiB);
}

// Two heads of keys and four of queries, of 8 elements. What the stand-in takes more than a
// simulated device, on which nothing is computed, is what attention has.
TEST_F(CountingDecoderMemory, AGpuGathersTheKeysOfASequenceOrOfSomeThousands) {
  const auto work = [&](DecoderPrecision precision, std::uint32_t length, DeviceKind device) {
    const auto demand = decoder_demand(folder_, precision, length, {.device = device});
    EXPECT_TRUE(demand);
    return demand ? demand->work_bytes : 0;
  };
  const auto attention = [&](DecoderPrecision precision, std::uint32_t length) {
    return work(precision, length, DeviceKind::Standin) -
           work(precision, length, DeviceKind::Simulated);
  };
  constexpr std::uint64_t kRotations = 4 * 8 * kLength;  // four cosines and four sines a position
  // 512 rows, of which 64 have logits, and 32 sequences: 4,608 keys of 128 each and of padding.
  constexpr std::uint64_t kOfRows = 8 * 512 + 4 * 8 * 512;
  constexpr std::uint64_t kShort =
      4 * (3 * 512 + 64 + 2 * (512 + 33) + 4'608 + 576 + 16 * 33) + kOfRows;
  EXPECT_EQ(attention(DecoderPrecision::Bf16, 128), 2 * 16384 * 2 * (2 * 8) + kRotations + kShort);
  EXPECT_EQ(attention(DecoderPrecision::Fp32, 128),
            2 * 16384 * 4 * (2 * 8 + 4 * 8) + kRotations + kShort);
  // 1,049,088 keys: one sequence is longer than what is gathered at least.
  constexpr std::uint64_t kLong =
      4 * (3 * 512 + 64 + 2 * (512 + 33) + 1'049'088 + 131'136 + 16 * 33) + kOfRows;
  EXPECT_EQ(attention(DecoderPrecision::Bf16, kLength),
            2 * kLength * 2 * (2 * 8) + kRotations + kLong);
  // 20,000 in steps of an eighth of 16,384; 640,512 keys.
  constexpr std::uint64_t kMiddle =
      4 * (3 * 512 + 64 + 2 * (512 + 33) + 640'512 + 80'064 + 16 * 33) + kOfRows;
  EXPECT_EQ(attention(DecoderPrecision::Bf16, 20'000),
            2 * 20'480 * 2 * (2 * 8) + kRotations + kMiddle);
}

}  // namespace
}  // namespace muster

#include "planner/parallel/parallel_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "planner/memory/memory_fixture.h"
#include "topology/machine_text.h"

namespace muster {
namespace {

Workload load(std::uint32_t batch, std::uint32_t context) {
  Workload workload;
  workload.batch = batch;
  workload.context = context;
  return workload;
}

UnitWork block_work(const ModelDescription& model, const Workload& workload, StepKind step,
                    std::uint32_t tensor = 1) {
  const auto memory = unit_memory(model, workload, tensor, true);
  EXPECT_TRUE(memory) << memory.error().message;
  return unit_work(model, workload, *memory, step, tensor)[1];
}

// hidden 16, 4 heads and 2 KV heads of 4, 24 wide: 16 x (16 + 8 + 8) + 16 x 16 = 768 elements of
// attention and 3 x 16 x 24 = 1152 of the feed-forward part.
TEST(UnitWork, CountsProductsAndScores) {
  const auto model = llama({});
  const auto two = load(2, 10);
  // A token of each: 2 x 1920 x 2, and scores and sums over 10 keys: 2 x 2 x 10 x 4 x (4 + 4).
  EXPECT_DOUBLE_EQ(block_work(model, two, StepKind::Decode).flops, 7680 + 1280);
  // All ten: 2 x 1920 x 20, and 2 x 20 x 5 x 4 x 8, as a token sees half of them on average.
  EXPECT_DOUBLE_EQ(block_work(model, two, StepKind::Prefill).flops, 76800 + 6400);
  EXPECT_DOUBLE_EQ(block_work(model, two, StepKind::Train).flops, 3 * (76800 + 6400));
  // Two devices: half the products, and two sums of 2 x 16 values in 16 bits.
  const auto cut = block_work(model, two, StepKind::Decode, 2);
  EXPECT_DOUBLE_EQ(cut.flops, (7680 + 1280) / 2.0);
  EXPECT_DOUBLE_EQ(cut.exchanged_bytes, 2 * 2 * 16 * 2);
}

TEST(UnitWork, ReadsWeightsAndCache) {
  const auto model = llama({});
  auto two = load(2, 10);
  two.kv_block = 1;
  // 1920 elements and two norms of 16 in 16 bits; keys and values of 2 x 10 tokens x 2 heads x 4.
  EXPECT_DOUBLE_EQ(block_work(model, two, StepKind::Decode).bytes,
                   (1920 + 32) * 2 + 2 * 20 * 2 * 4 * 2);
}

// Of eight experts a token reads two, and computes with two.
TEST(UnitWork, OfAMixtureIsThatOfTheExpertsChosen) {
  auto model = llama({});
  for (auto& layer : model.shape.layers) {
    layer.expert_count = 8;
    layer.experts_per_token = 2;
  }
  const auto one = load(1, 10);
  std::vector<UnitMemory> memory(model.units.size());
  memory[1].weights = 768 + 8 * 1152;
  EXPECT_DOUBLE_EQ(unit_work(model, one, memory, StepKind::Decode, 1)[1].bytes, 768 + 2 * 1152);
  EXPECT_DOUBLE_EQ(unit_work(model, one, memory, StepKind::Decode, 1)[1].flops,
                   2 * (768 + 2 * 1152) + 2 * 10 * 4 * 8);
  const auto many = load(16, 10);
  EXPECT_DOUBLE_EQ(unit_work(model, many, memory, StepKind::Decode, 1)[1].bytes, 768 + 8 * 1152);
}

TEST(UnitSeconds, AreTheSlowerOfProductsAndBytes) {
  DeviceClass known{"x", DeviceKind::Cuda, 0, 1e12, 1e11};
  EXPECT_DOUBLE_EQ(*unit_seconds({2e12, 1e11, 0.0}, known, 1, 0.0), 2.0);
  EXPECT_DOUBLE_EQ(*unit_seconds({2e11, 1e11, 0.0}, known, 1, 0.0), 1.0);
  known.flops_per_second.reset();
  EXPECT_FALSE(unit_seconds({2e12, 1e11, 0.0}, known, 1, 0.0));
}

TEST(AllReduceSeconds, IsARing) {
  // 3.6 us, 14 hops of 0.5 us, and 2 x 7/8 of the bytes.
  EXPECT_NEAR(all_reduce_seconds(1e9, 8, 100e9), 3.6e-6 + 7e-6 + 1.75e-2, 1e-12);
  EXPECT_DOUBLE_EQ(all_reduce_seconds(1e9, 1, 100e9), 0.0);
}

std::vector<std::uint32_t> all_of(const Machine& machine) {
  std::vector<std::uint32_t> devices(machine.devices.size());
  std::iota(devices.begin(), devices.end(), 0U);
  return devices;
}

// A model of about 23 GB on eight devices of 20 GB: no device holds it alone.
TEST(ParallelChoices, AreLegalAndFit) {
  const auto model = llama({.layers = 40,
                            .hidden = 5120,
                            .heads = 40,
                            .kv_heads = 8,
                            .head_size = 128,
                            .wide = 13824,
                            .vocab = 32000});
  const auto machine = *parse_machine("sim:8xA10G");
  const auto devices = all_of(machine);
  const auto workload = load(1, 2048);
  const ParallelQuestion question{model, workload, machine, devices, 20'000'000'000};
  const auto sweep = parallel_choices(question);
  ASSERT_TRUE(sweep) << sweep.error().message;
  EXPECT_TRUE(sweep->is_timed);
  ASSERT_FALSE(sweep->choices.empty());
  for (const auto& choice : sweep->choices) {
    EXPECT_LE(choice.tensor * choice.pipeline * choice.data, 8U);
    EXPECT_EQ(40 % choice.tensor, 0U);
    EXPECT_GE(choice.tensor * choice.pipeline, 2U) << "one device does not hold it";
    EXPECT_LE(choice.steps_per_second, sweep->choices.front().steps_per_second);
    if (choice.pipeline > 1) continue;
    const auto parts = stage_memory(
        model, workload, {.first_unit = 0, .last_unit = 42, .tensor_parallel = choice.tensor});
    ASSERT_TRUE(parts);
    EXPECT_LE(parts->total(), 20'000'000'000U);
  }
  // Copies of two or more: the deepest pipeline of one copy is there too.
  const auto has = [&](std::uint32_t tensor, std::uint32_t pipeline, std::uint32_t data) {
    return std::any_of(sweep->choices.begin(), sweep->choices.end(), [&](const auto& choice) {
      return choice.tensor == tensor && choice.pipeline == pipeline && choice.data == data;
    });
  };
  EXPECT_TRUE(has(1, 8, 1));
  EXPECT_TRUE(has(1, 2, 4));
  EXPECT_TRUE(has(8, 1, 1));
  EXPECT_FALSE(has(1, 1, 8));
}

TEST(ParallelChoices, CompareBytesWhereTheSpeedIsUnknown) {
  const auto model = llama({});
  auto machine = *parse_machine("sim:2xP40");  // its data sheet states no 16-bit products
  const auto devices = all_of(machine);
  const auto workload = load(1, 8);
  const auto sweep =
      parallel_choices({model, workload, machine, devices, machine.devices[0].free_bytes});
  ASSERT_TRUE(sweep) << sweep.error().message;
  EXPECT_FALSE(sweep->is_timed);
  EXPECT_FALSE(sweep->choices.empty());
}

}  // namespace
}  // namespace muster

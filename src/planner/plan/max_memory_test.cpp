#include "planner/plan/max_memory.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

std::uint64_t accelerate_bytes(std::string_view text) {
  const auto bytes = parse_accelerate_size(text);
  EXPECT_TRUE(bytes) << text;
  return bytes ? *bytes : 0;
}

std::string refusal(std::string_view text) {
  const auto bytes = parse_memory_size(text);
  EXPECT_FALSE(bytes) << text;
  return bytes ? "" : bytes.error().message;
}

TEST(AccelerateSize, ReadsItsUnits) {
  EXPECT_EQ(accelerate_bytes("10GB"), 10'000'000'000U);
  EXPECT_EQ(accelerate_bytes("10GiB"), 10'737'418'240U);
  EXPECT_EQ(accelerate_bytes("10gib"), 10'737'418'240U);
  EXPECT_EQ(accelerate_bytes("1MiB"), 1'048'576U);
  EXPECT_EQ(accelerate_bytes("5MB"), 5'000'000U);
  EXPECT_EQ(accelerate_bytes("3KiB"), 3'072U);
  EXPECT_EQ(accelerate_bytes("3KB"), 3'000U);
  EXPECT_EQ(accelerate_bytes("1kB"), 1'000U);
}

TEST(AccelerateSize, TakesASmallFinalBForBits) {
  EXPECT_EQ(accelerate_bytes("10gb"), 1'250'000'000U);
  EXPECT_EQ(accelerate_bytes("10Gb"), 1'250'000'000U);
  EXPECT_EQ(accelerate_bytes("10gB"), 10'000'000'000U);
  EXPECT_EQ(accelerate_bytes("9kb"), 1'125U);
}

TEST(AccelerateSize, ReadsNumbersAsPythonDoes) {
  EXPECT_EQ(accelerate_bytes("1.5GB"), 1'500'000'000U);
  EXPECT_EQ(accelerate_bytes("1e3MB"), 1'000'000'000U);
  EXPECT_EQ(accelerate_bytes("10 GB"), 10'000'000'000U);
  EXPECT_EQ(accelerate_bytes(" 10GB"), 10'000'000'000U);
  EXPECT_EQ(accelerate_bytes("+2GB"), 2'000'000'000U);
  EXPECT_EQ(accelerate_bytes("1_0KB"), 10'000U);
  EXPECT_EQ(accelerate_bytes(".5KB"), 500U);
  EXPECT_EQ(accelerate_bytes("0.0007KB"), 0U);  // int() cuts
}

TEST(AccelerateSize, RefusesWhatAccelerateRefuses) {
  for (const auto* text : {"10", "1TB", "1TiB", "5MBB", "-1GB", "", "GB", "xGB", "1__0GB", "_1GB",
                           "1_GB", "0x10GB", "nanGB", "infGB", "+-1GB", "10GB ", "1e400GB"}) {
    EXPECT_FALSE(parse_accelerate_size(text)) << text;
  }
}

TEST(MemorySize, ReadsBytesAndUnits) {
  EXPECT_EQ(*parse_memory_size("20GB"), 20'000'000'000U);
  EXPECT_EQ(*parse_memory_size("1.5GiB"), 1'610'612'736U);
  EXPECT_EQ(*parse_memory_size("800 MB"), 800'000'000U);
  EXPECT_EQ(*parse_memory_size("8589934592"), 8'589'934'592U);
  EXPECT_EQ(*parse_memory_size("0"), 0U);
}

TEST(MemorySize, RefusesBitsAndNamesBytes) {
  EXPECT_EQ(refusal("10gb"),
            "'10gb' is ambiguous, accelerate reads its small b as bits: write 10GB");
  EXPECT_EQ(refusal("1.5Mb"),
            "'1.5Mb' is ambiguous, accelerate reads its small b as bits: write 1.5MB");
}

TEST(MemorySize, RefusesTerabytesAndNamesGigabytes) {
  EXPECT_EQ(refusal("2TB"), "memory sizes have no unit above GB and GiB: for '2TB' write 2000GB");
  EXPECT_EQ(refusal("0.5TiB"),
            "memory sizes have no unit above GB and GiB: for '0.5TiB' write 512GiB");
}

TEST(MemorySize, RefusesNegativesAndNamesThePositive) {
  EXPECT_EQ(refusal("-5GB"), "a memory size cannot be negative: for '-5GB' write 5GB");
}

TEST(MemorySize, RefusesWhatIsNoSize) {
  for (const auto* text : {"", "GB", "ten", "10XB", "1e30GB", "18446744073709551616", "-", "--5GB",
                           "-5gb", "xTB", "1 2"}) {
    EXPECT_NE(refusal(text), "") << text;
  }
}

TEST(MemoryLimits, ReadsAList) {
  const auto limits = parse_memory_limits("cuda:0=20GB, cpu = 64GiB,disk=0");
  ASSERT_TRUE(limits);
  ASSERT_EQ(limits->size(), 3U);
  EXPECT_EQ((*limits)[0].device, "cuda:0");
  EXPECT_EQ((*limits)[0].bytes, 20'000'000'000U);
  EXPECT_EQ((*limits)[1].device, "cpu");
  EXPECT_EQ((*limits)[1].bytes, 68'719'476'736U);
  EXPECT_EQ((*limits)[2].bytes, 0U);
}

TEST(MemoryLimits, AnEmptyTextIsNoLimit) { EXPECT_TRUE(parse_memory_limits("")->empty()); }

TEST(MemoryLimits, RefusesHalfEntries) {
  EXPECT_FALSE(parse_memory_limits("20GB"));
  EXPECT_FALSE(parse_memory_limits("=20GB"));
  EXPECT_FALSE(parse_memory_limits("cuda:0=20GB,"));
  EXPECT_FALSE(parse_memory_limits("cuda:0="));
  EXPECT_FALSE(parse_memory_limits("cpu=1GB,cpu=2GB"));
}

TEST(Place, ReadsAcceleratesKeysAndNoOthers) {
  EXPECT_EQ(parse_place("3")->index, 3U);
  EXPECT_EQ(parse_place("3")->name(), "3");
  EXPECT_EQ(parse_place("mps")->kind, PlaceKind::Mps);
  EXPECT_EQ(parse_place("cpu")->kind, PlaceKind::Cpu);
  EXPECT_EQ(parse_place("disk")->kind, PlaceKind::Disk);
  for (const auto* name : {"", "-1", "cuda:0", "1x", "CPU", "4294967296"}) {
    EXPECT_FALSE(parse_place(name)) << name;
  }
}

TEST(PlaceBudgets, ComeInAcceleratesOrder) {
  const auto ordered = ordered_budgets({{Place{PlaceKind::Disk, 0}, 1},
                                        {Place{PlaceKind::Cpu, 0}, 2},
                                        {Place{PlaceKind::Gpu, 10}, 3},
                                        {Place{PlaceKind::Gpu, 2}, 4}});
  ASSERT_TRUE(ordered);
  std::string names;
  for (const auto& budget : *ordered) names += budget.place.name() + " ";
  EXPECT_EQ(names, "2 10 cpu disk ");
}

TEST(PlaceBudgets, RefuseAPlaceTwice) {
  EXPECT_FALSE(ordered_budgets({{Place{PlaceKind::Gpu, 1}, 1}, {Place{PlaceKind::Gpu, 1}, 2}}));
}

}  // namespace
}  // namespace muster

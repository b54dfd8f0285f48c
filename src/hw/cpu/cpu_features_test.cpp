#include "hw/cpu/cpu_features.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster {
namespace {

using Names = std::vector<std::string>;

TEST(InstructionSets, AreNamedFromTheirBits) {
  // A Haswell: FMA is leaf 1 ECX bit 12, F16C bit 29, AVX bit 28; AVX2 is leaf 7 EBX bit 5.
  const CpuidFacts facts{
      .leaf1_ecx = (1U << 12U) | (1U << 28U) | (1U << 29U), .leaf7_ebx = 1U << 5U, .xcr0 = 0x7};
  EXPECT_EQ(instruction_sets(facts), (Names{"avx", "f16c", "fma", "avx2"}));
}

TEST(InstructionSets, NeedTheSystemToSaveTheirRegisters) {
  // AVX512F and AMX are in the processor; XCR0 0xE7 has ZMM state but not the tiles (bits 17, 18).
  CpuidFacts facts{.leaf7_ebx = 1U << 16U, .leaf7_edx = (1U << 22U) | (1U << 24U), .xcr0 = 0xE7};
  EXPECT_EQ(instruction_sets(facts), (Names{"avx512f"}));
  facts.xcr0 = 0x600E7;
  EXPECT_EQ(instruction_sets(facts), (Names{"avx512f", "amx_tile", "amx_bf16"}));
  facts.xcr0 = 0x7;
  EXPECT_EQ(instruction_sets(facts), Names{});
}

TEST(InstructionSets, OfThisProcessorAgreeWithTheCompilersOwnCheck) {
#if defined(__x86_64__)
  const auto names = instruction_sets(read_cpuid());
  const auto has = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  EXPECT_EQ(has("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(has("fma"), __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(has("avx512f"), __builtin_cpu_supports("avx512f") != 0);
#endif
}

}  // namespace
}  // namespace muster

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

/// The answers of `cpuid` that name instruction sets, and the register state the system saves
/// (XCR0).
struct CpuidFacts {
  std::uint32_t leaf1_ecx = 0;
  std::uint32_t leaf7_ebx = 0;
  std::uint32_t leaf7_ecx = 0;
  std::uint32_t leaf7_edx = 0;
  std::uint32_t leaf7_1_eax = 0;
  std::uint64_t xcr0 = 0;
};

/// Asks the processor this runs on. All zero where it is no x86-64.
CpuidFacts read_cpuid();

/// The sets that matter to the speed of the engine and that both processor and system support, as
/// Linux names them, weakest first: "avx2", "fma", "avx512f", …, "amx_bf16". Empty for other
/// processors.
///
/// Source: Intel 64 and IA-32 Architectures SDM, volume 2A, CPUID, leaves 1 and 7; volume 1, 13.3
/// (XCR0).
std::vector<std::string> instruction_sets(const CpuidFacts& facts);

}  // namespace muster

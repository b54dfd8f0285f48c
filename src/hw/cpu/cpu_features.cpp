// A set counts only where the processor has it and the system saves its registers: a hypervisor or
// an old kernel may leave AVX-512 or AMX in CPUID and out of XCR0, and the first instruction would
// then be illegal. XCR0 may be read only after OSXSAVE says so. The table is in order of strength,
// which is the order that is shown.

#include "hw/cpu/cpu_features.h"

#include <array>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace muster {
namespace {

// Register state that the system must save for a set to be usable.
constexpr std::uint64_t kAvxState = 0x6;       // XMM and YMM
constexpr std::uint64_t kAvx512State = 0xE6;   // and the masks and both halves of ZMM
constexpr std::uint64_t kAmxState = 0x60000;   // tile configuration and tile data
constexpr std::uint32_t kOsxsave = 1U << 27U;  // leaf 1 ECX: XCR0 can be read

struct SetRow {
  std::string_view name;
  std::uint32_t CpuidFacts::*word;
  std::uint32_t bit;
  std::uint64_t state;
};

constexpr std::array kSets{
    SetRow{"avx", &CpuidFacts::leaf1_ecx, 28, kAvxState},
    SetRow{"f16c", &CpuidFacts::leaf1_ecx, 29, kAvxState},
    SetRow{"fma", &CpuidFacts::leaf1_ecx, 12, kAvxState},
    SetRow{"avx2", &CpuidFacts::leaf7_ebx, 5, kAvxState},
    SetRow{"avx_vnni", &CpuidFacts::leaf7_1_eax, 4, kAvxState},
    SetRow{"avx512f", &CpuidFacts::leaf7_ebx, 16, kAvx512State},
    SetRow{"avx512bw", &CpuidFacts::leaf7_ebx, 30, kAvx512State},
    SetRow{"avx512vl", &CpuidFacts::leaf7_ebx, 31, kAvx512State},
    SetRow{"avx512_vnni", &CpuidFacts::leaf7_ecx, 11, kAvx512State},
    SetRow{"avx512_bf16", &CpuidFacts::leaf7_1_eax, 5, kAvx512State},
    SetRow{"avx512_fp16", &CpuidFacts::leaf7_edx, 23, kAvx512State},
    SetRow{"amx_tile", &CpuidFacts::leaf7_edx, 24, kAmxState},
    SetRow{"amx_bf16", &CpuidFacts::leaf7_edx, 22, kAmxState},
    SetRow{"amx_int8", &CpuidFacts::leaf7_edx, 25, kAmxState},
    SetRow{"amx_fp16", &CpuidFacts::leaf7_1_eax, 21, kAmxState},
};

}  // namespace

CpuidFacts read_cpuid() {
  CpuidFacts facts;
#if defined(__x86_64__)
  std::uint32_t eax = 0;
  std::uint32_t ebx = 0;
  std::uint32_t ecx = 0;
  std::uint32_t edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0) {
    facts.leaf1_ecx = ecx;
  }
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
    facts.leaf7_ebx = ebx;
    facts.leaf7_ecx = ecx;
    facts.leaf7_edx = edx;
    const bool has_subleaf1 = eax >= 1;  // EAX of subleaf 0 is the highest subleaf
    if (has_subleaf1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0) {
      facts.leaf7_1_eax = eax;
    }
  }
  if ((facts.leaf1_ecx & kOsxsave) != 0) {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    facts.xcr0 = (static_cast<std::uint64_t>(high) << 32U) | low;
  }
#endif
  return facts;
}

std::vector<std::string> instruction_sets(const CpuidFacts& facts) {
  std::vector<std::string> names;
  for (const auto& row : kSets) {
    const bool in_processor = ((facts.*row.word >> row.bit) & 1U) != 0;
    const bool in_system = (facts.xcr0 & row.state) == row.state;
    if (in_processor && in_system) names.emplace_back(row.name);
  }
  return names;
}

}  // namespace muster

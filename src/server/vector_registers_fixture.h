#pragma once

// Whether the upper halves of the vector registers hold something. While they do, each instruction
// of SSE waits for them: a server whose base64 left them so took 1.2 µs longer a request, of 9
// (Xeon of 2023). What uses AVX has to clear them (VZEROUPPER), which compilers do, but not always.

#include <cstdint>
#include <optional>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace muster {

/// Whether the CPU has the upper halves marked as in use: XGETBV with ECX = 1, bit 2. Source:
/// Intel's Software Developer's Manual, volume 1, section 13.2. nullopt where it does not say, or
/// is another.
inline std::optional<bool> are_upper_halves_used() {
#if defined(__x86_64__)
  constexpr unsigned kExtendedState = 0xD;
  constexpr unsigned kSaysWhatIsUsed = 1U << 2;  // of EAX, sub-leaf 1
  constexpr std::uint32_t kAvx = 1U << 2;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid_count(kExtendedState, 1, &a, &b, &c, &d) == 0) return std::nullopt;
  if ((a & kSaysWhatIsUsed) == 0) return std::nullopt;
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
  return (low & kAvx) != 0;
#else
  return std::nullopt;
#endif
}

}  // namespace muster

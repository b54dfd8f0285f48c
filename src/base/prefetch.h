#pragma once

#include <cstddef>
#include <span>

// GCC 12 takes a function that does nothing but prefetch for one without effect and drops its calls
// (seen in the code it makes). Inlined early it stays: hence always_inline, here and in functions
// that only call these.

namespace muster {

inline constexpr std::size_t kCacheLine = 64;  // bytes: of x86-64 and of most of AArch64

/// Has bytes fetched into the near cache while the caller goes on, for what it reads shortly. It
/// changes nothing, and bytes that are not there are passed over.
[[gnu::always_inline]] inline void prefetch(std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += kCacheLine) {
    __builtin_prefetch(bytes.data() + at);
  }
  if (!bytes.empty()) __builtin_prefetch(&bytes.back());  // of a line that is begun
}

/// The same for what it writes shortly: copies in other cores' caches are dropped too. Without it a
/// locked instruction after a store to such bytes waits until they are here. PREFETCHW is written
/// out, as compilers for a general x86-64 take a plain prefetch; processors that do not know it
/// pass over it. Source: Intel SDM, volume 2B, PREFETCHW.
[[gnu::always_inline]] inline void prefetch_to_write(std::span<const std::byte> bytes) {
  const auto fetch = [](const std::byte& place) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(place));
#else
    __builtin_prefetch(&place, 1);
#endif
  };
  for (std::size_t at = 0; at < bytes.size(); at += kCacheLine) fetch(bytes[at]);
  if (!bytes.empty()) fetch(bytes.back());
}

}  // namespace muster

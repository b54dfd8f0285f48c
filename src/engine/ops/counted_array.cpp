// Large arrays of the engine: aligned, counted, and in large pages where that is possible.

#include "engine/ops/counted_array.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#include "engine/memory_use.h"

namespace muster::engine {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20U;

}  // namespace

void* allocate_counted(std::size_t bytes) {
  const bool is_large = bytes >= kHugePageBytes;
  void* memory = ::operator new[](bytes, std::align_val_t(is_large ? kHugePageBytes : kAlignment));
  count_allocated(bytes);
  // Only advice: without such pages it stands in small ones.
  if (is_large) (void)::madvise(memory, bytes / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
  return memory;
}

void free_counted(void* memory, std::size_t bytes) {
  const bool is_large = bytes >= kHugePageBytes;
  count_freed(bytes);
  ::operator delete[](memory, std::align_val_t(is_large ? kHugePageBytes : kAlignment));
}

}  // namespace muster::engine

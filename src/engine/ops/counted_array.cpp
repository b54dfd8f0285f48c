// Large arrays of the engine: aligned, counted, and in large pages where that is possible.

#include "engine/ops/counted_array.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#include "engine/memory_use.h"
#include "engine/ops/page_arena.h"

namespace muster::engine {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePageBytes = PageArena::kPage;

}  // namespace

void* allocate_counted(std::size_t bytes, ArrayPlace place) {
  if (place == ArrayPlace::Weights) {
    auto* const memory = PageArena::of_weights().take(bytes);
    count_allocated(bytes);
    return memory;
  }
  const bool is_large = bytes >= kHugePageBytes;
  void* memory = ::operator new[](bytes, std::align_val_t(is_large ? kHugePageBytes : kAlignment));
  count_allocated(bytes);
  // Only advice: without such pages it stands in small ones.
  if (is_large) (void)::madvise(memory, bytes / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
  return memory;
}

void free_counted(void* memory, std::size_t bytes, ArrayPlace place) {
  count_freed(bytes);
  if (place == ArrayPlace::Weights) {
    return PageArena::of_weights().give_back(static_cast<std::byte*>(memory), bytes);
  }
  const bool is_large = bytes >= kHugePageBytes;
  ::operator delete[](memory, std::align_val_t(is_large ? kHugePageBytes : kAlignment));
}

}  // namespace muster::engine

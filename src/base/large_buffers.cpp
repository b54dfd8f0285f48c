// Sets glibc's thresholds, which keeps it from changing them itself.
#include "base/large_buffers.h"

#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace muster {

void return_large_buffers() {
#ifdef __GLIBC__
  // A mapping costs a page fault for every 4 KiB and an unmapping; what is shorter stays in the
  // heap.
  constexpr int kMappedFrom = 4 << 20;
  constexpr int kFreeAtTheTop = 1 << 20;
  constexpr int kArenas = 2;  // an arena keeps what its threads have freed
  ::mallopt(M_MMAP_THRESHOLD, kMappedFrom);
  ::mallopt(M_TRIM_THRESHOLD, kFreeAtTheTop);
  ::mallopt(M_ARENA_MAX, kArenas);
#endif
}

}  // namespace muster

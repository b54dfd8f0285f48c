#include "counted_heap.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {

std::size_t live_bytes = 0;
std::size_t peak_bytes = 0;

}  // namespace

std::size_t start_heap_peak() {
  peak_bytes = live_bytes;
  return live_bytes;
}

std::size_t heap_peak() { return peak_bytes; }

void* operator new(std::size_t size) {
  void* memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  live_bytes += malloc_usable_size(memory);
  peak_bytes = std::max(peak_bytes, live_bytes);
  return memory;
}

void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  live_bytes -= malloc_usable_size(memory);
  std::free(memory);
}

void operator delete(void* memory, std::size_t /*size*/) noexcept { operator delete(memory); }

// Chunks of large pages that are filled from the front, and unmapped when all of one is free.

#include "engine/ops/page_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>

#include "base/check.h"

namespace muster::engine {
namespace {

constexpr std::size_t kLine = 64;

std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

std::size_t lines_of(std::size_t bytes) { return std::max(kLine, rounded_up(bytes, kLine)); }

}  // namespace

PageArena::~PageArena() {
  for (const auto& chunk : chunks_) ::munmap(chunk.begin, chunk.size);
}

// Never destroyed: a model may be freed as the process ends.
PageArena& PageArena::of_weights() {
  static auto& arena = *new PageArena;
  return arena;
}

// The kernel places it on a small page: what is mapped too much, before and behind, goes back.
PageArena::Chunk PageArena::map_chunk(std::size_t bytes) {
  const std::size_t size = rounded_up(std::max(bytes, kChunk), kPage);
  void* const mapped = ::mmap(nullptr, size + kPage, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(mapped);
  const std::size_t before = (kPage - reinterpret_cast<std::uintptr_t>(begin) % kPage) % kPage;
  if (before > 0) ::munmap(begin, before);
  if (before < kPage) ::munmap(begin + before + size, kPage - before);
  // Only advice: without such pages it stands in small ones.
  (void)::madvise(begin + before, size, MADV_HUGEPAGE);
  return {.begin = begin + before, .size = size};
}

std::byte* PageArena::take(std::size_t bytes) {
  const std::size_t needed = lines_of(bytes);
  const std::lock_guard lock(mutex_);
  if (chunks_.empty() || chunks_.back().size - chunks_.back().used < needed) {
    chunks_.push_back(map_chunk(needed));
  }
  auto& chunk = chunks_.back();
  std::byte* const memory = chunk.begin + chunk.used;
  chunk.used += needed;
  chunk.held += needed;
  return memory;
}

void PageArena::give_back(std::byte* memory, std::size_t bytes) {
  const std::size_t held = lines_of(bytes);
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(chunks_.begin(), chunks_.end(), [memory](const Chunk& chunk) {
    return memory >= chunk.begin && memory < chunk.begin + chunk.used;
  });
  MUSTER_CHECK(found != chunks_.end() && found->held >= held);
  found->held -= held;
  if (found->held > 0) return;
  ::munmap(found->begin, found->size);
  chunks_.erase(found);
}

std::size_t PageArena::chunk_count() const {
  const std::lock_guard lock(mutex_);
  return chunks_.size();
}

}  // namespace muster::engine

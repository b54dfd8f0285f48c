#include "standin/pinned_memory.h"

#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace muster::standin {
namespace {

using Access = PageStore::Access;

constexpr int kUndefined = 0xFF;  // a NaN in every float type, and no token id

// Of few sizes, so that what is kept for later serves many, and does not become more and more.
// Source: torch 2.11, ATen/core/CachingHostAllocator.h, which rounds up to a power of two.
std::size_t block_size(std::uint64_t size) {
  return std::bit_ceil(whole_pages(size) / kPageSize) * kPageSize;
}

}  // namespace

PinnedMemory::PinnedMemory(std::unique_ptr<PageStore> store)
    : store_(std::move(store)), heap_(store_->size()) {}

void* PinnedMemory::allocate(std::uint64_t size, const Past& done) {
  const auto pages = block_size(size);
  Block* block = nullptr;
  const auto [first, last] = free_.equal_range(pages);
  for (auto kept = first; kept != last; ++kept) {
    auto& candidate = blocks_.at(kept->second);
    if (!candidate.history.is_over(done)) continue;
    block = &candidate;
    free_.erase(kept);
    break;
  }
  if (block == nullptr) {
    const auto begin = heap_.take(pages);
    if (!begin) return nullptr;
    block = &blocks_[*begin];
    block->begin = *begin;
    block->size = pages;
    store_->set_device_access(*begin, pages, Access::ReadWrite);
  }
  block->is_free = false;
  give_to_host(*block);
  auto* memory = store_->host_view() + block->begin;
  std::memset(memory, kUndefined, size);
  return memory;
}

void PinnedMemory::free(const void* address) {
  auto* block = find(address);
  MUSTER_CHECK(block != nullptr && !block->is_free);
  block->is_free = true;
  store_->set_host_access(block->begin, block->size, Access::None);
  in_use_.erase(block->begin);
  free_.emplace(block->size, block->begin);
}

PinnedMemory::Block* PinnedMemory::find(const void* address) {
  if (!store_->contains(address)) return nullptr;
  const auto extent = heap_.block_at(store_->place_of(address));
  return extent ? &blocks_.at(extent->begin) : nullptr;
}

// A copy to the block takes more from the host than one from it, so it decides.
void PinnedMemory::add_use(Block& block, const MemoryUse& use) {
  const bool is_first = in_use_.insert(block.begin).second;
  if (use.is_write) {
    store_->set_host_access(block.begin, block.size, Access::None);
  } else if (is_first) {
    store_->set_host_access(block.begin, block.size, Access::Read);
  }
  block.history.add(use);
}

void PinnedMemory::on_wait(const Past& past) {
  for (auto place = in_use_.begin(); place != in_use_.end();) {
    auto& block = blocks_.at(*place);
    if (block.history.is_over(past)) {
      give_to_host(block);
      place = in_use_.erase(place);
    } else {
      ++place;
    }
  }
}

void PinnedMemory::give_to_host(Block& block) {
  block.history.clear();
  store_->set_host_access(block.begin, block.size, Access::ReadWrite);
}

}  // namespace muster::standin

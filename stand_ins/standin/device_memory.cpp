#include "standin/device_memory.h"

#include <algorithm>

#include "base/check.h"

namespace muster::standin {

DeviceMemory::DeviceMemory(std::unique_ptr<PageStore> store)
    : store_(std::move(store)), heap_(store_->size()) {}

void* DeviceMemory::give_out(Block& block, StreamNumber owner) {
  block.owner = owner;
  block.history.clear();
  block.users.clear();
  block.is_free = false;
  ++counts_.allocations;
  counts_.live_bytes += block.size;
  counts_.live_peak = std::max(counts_.live_peak, counts_.live_bytes);
  return store_->host_view() + block.begin;
}

// It takes nothing from the device, so it needs no look at the limit, even where others have taken
// all the rest.
void* DeviceMemory::reuse(std::uint64_t size, StreamNumber owner) {
  const auto kept = kept_.lower_bound({owner, rounded(size)});
  if (kept == kept_.end() || kept->first.first != owner) return nullptr;
  if (whole_pages(kept->first.second) != whole_pages(size)) return nullptr;
  auto& block = blocks_.at(kept->second);
  kept_.erase(kept);
  return give_out(block, owner);
}

void* DeviceMemory::take(std::uint64_t size, StreamNumber owner) {
  const auto begin = heap_.take(size);
  if (!begin) return nullptr;
  store_->set_device_access(*begin, whole_pages(size), PageStore::Access::ReadWrite);
  auto& block = blocks_[*begin];
  block.begin = *begin;
  block.size = rounded(size);
  counts_.taken_bytes += block.size;
  counts_.taken_peak = std::max(counts_.taken_peak, counts_.taken_bytes);
  return give_out(block, owner);
}

DeviceMemory::Block* DeviceMemory::find(const void* address) {
  if (!store_->contains(address)) return nullptr;
  const auto extent = heap_.block_at(store_->place_of(address));
  return extent ? &blocks_.at(extent->begin) : nullptr;
}

void DeviceMemory::give_back(Block& block, const Moment& now) {
  MUSTER_CHECK(!block.is_free);
  block.is_free = true;
  block.given_back = now;
  counts_.live_bytes -= block.size;
  kept_.emplace(std::pair{block.owner, block.size}, block.begin);
}

void DeviceMemory::flush(const Past& done) {
  for (auto kept = kept_.begin(); kept != kept_.end();) {
    const auto found = blocks_.find(kept->second);
    const auto& block = found->second;
    if (block.given_back.count > 0 && !done.has(block.given_back)) {
      ++kept;
      continue;
    }
    const auto pages = whole_pages(block.size);
    store_->set_device_access(block.begin, pages, PageStore::Access::None);
    store_->drop(block.begin, pages);
    heap_.give_back(block.begin);
    counts_.taken_bytes -= block.size;
    blocks_.erase(found);
    kept = kept_.erase(kept);
  }
}

void DeviceMemory::restart_peaks() {
  counts_.live_peak = counts_.live_bytes;
  counts_.taken_peak = counts_.taken_bytes;
}

}  // namespace muster::standin

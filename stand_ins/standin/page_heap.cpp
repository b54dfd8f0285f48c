// Two maps by address: gaps, which are joined when they touch, and blocks. Addresses are plentiful
// here, memory is not, so nothing is done against fragmentation.

#include "standin/page_heap.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace muster::standin {

std::size_t whole_pages(std::size_t size) {
  return (std::max<std::size_t>(size, 1) + kPageSize - 1) / kPageSize * kPageSize;
}

PageHeap::PageHeap(std::size_t size) { free_.emplace(0, size); }

std::optional<std::size_t> PageHeap::take(std::size_t size) {
  const auto block = whole_pages(size);
  const auto wanted = block + kPageSize;
  const auto gap = std::find_if(free_.begin(), free_.end(),
                                [&](const auto& entry) { return entry.second >= wanted; });
  if (gap == free_.end()) return std::nullopt;
  const auto [begin, gap_size] = *gap;
  free_.erase(gap);
  if (gap_size > wanted) free_.emplace(begin + wanted, gap_size - wanted);
  taken_.emplace(begin, block);
  return begin;
}

void PageHeap::give_back(std::size_t begin) {
  const auto block = taken_.find(begin);
  MUSTER_CHECK(block != taken_.end());
  auto size = block->second + kPageSize;
  taken_.erase(block);
  auto next = free_.lower_bound(begin);
  if (next != free_.end() && next->first == begin + size) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      before->second += size;
      return;
    }
  }
  free_.emplace(begin, size);
}

std::optional<PageHeap::Extent> PageHeap::block_at(std::size_t place) const {
  auto found = taken_.upper_bound(place);
  if (found == taken_.begin()) return std::nullopt;
  --found;
  if (place >= found->first + found->second) return std::nullopt;
  return Extent{found->first, found->second};
}

}  // namespace muster::standin

// Separate chaining through the entries themselves, so the table needs no memory beyond its buckets
// and a lookup touches one bucket and, usually, one block.

#include "cache/entry_table.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace muster {

std::size_t EntryTable::bucket_of(const CacheKey& key) const {
  std::uint64_t start = 0;
  std::memcpy(&start, key.data(), sizeof start);
  return start & (buckets_.size() - 1);
}

BlockIndex EntryTable::find(const CacheKey& key) const {
  BlockIndex index = buckets_[bucket_of(key)];
  while (index != kNoBlock && pool_.entry(index).key != key) {
    index = pool_.entry(index).chained;
  }
  return index;
}

void EntryTable::add(BlockIndex entry) {
  auto& head = pool_.entry(entry);
  auto& bucket = buckets_[bucket_of(head.key)];
  head.chained = bucket;
  bucket = entry;
}

void EntryTable::remove(BlockIndex entry) {
  const auto& head = pool_.entry(entry);
  BlockIndex* link = &buckets_[bucket_of(head.key)];
  while (*link != entry) {
    link = &pool_.entry(*link).chained;
  }
  *link = head.chained;
}

void EntryTable::clear() { std::fill(buckets_.begin(), buckets_.end(), kNoBlock); }

}  // namespace muster

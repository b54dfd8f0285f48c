#pragma once

#include <cstddef>
#include <vector>

#include "cache/block_pool.h"

namespace muster {

/// The entries of a pool by key: buckets, chained through the entries' first blocks. A key is a
/// SHA-256 and needs no further hashing.
///
/// Threads: owned by one loop; borrows the pool.
class EntryTable {
 public:
  /// bucket_count: a power of two.
  EntryTable(BlockPool& pool, std::size_t bucket_count)
      : pool_(pool), buckets_(bucket_count, kNoBlock) {}

  /// kNoBlock when it is not there.
  BlockIndex find(const CacheKey& key) const;
  /// An entry whose key is not there yet.
  void add(BlockIndex entry);
  void remove(BlockIndex entry);
  void clear();

 private:
  std::size_t bucket_of(const CacheKey& key) const;

  BlockPool& pool_;
  std::vector<BlockIndex> buckets_;
};

}  // namespace muster

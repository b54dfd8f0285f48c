#pragma once

#include "cache/block_pool.h"

namespace muster {

/// The entries of a pool by when they were last used, linked through their first blocks.
///
/// Threads: owned by one loop; borrows the pool.
class RecencyList {
 public:
  explicit RecencyList(BlockPool& pool) : pool_(pool) {}

  /// kNoBlock when there is none.
  BlockIndex oldest() const { return oldest_; }

  void add_newest(BlockIndex entry);
  void add_oldest(BlockIndex entry);
  void remove(BlockIndex entry);
  void touch(BlockIndex entry);
  void clear() { newest_ = oldest_ = kNoBlock; }

 private:
  BlockPool& pool_;
  BlockIndex newest_ = kNoBlock;
  BlockIndex oldest_ = kNoBlock;
};

}  // namespace muster

#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/prefix_key.h"

namespace muster {

struct BlockCacheOptions {
  std::uint32_t block_tokens = 16;  // positions that a block holds
  std::uint32_t block_count = 0;
  /// How blocks are named; a test takes a bad hash, to see that nothing depends on a good one.
  PrefixKey (*key_of)(const PrefixKey&, std::span<const std::uint32_t>) = next_prefix_key;
};

/// Who has which block of a decoder's cache of keys and values, and what the blocks are worth that
/// nobody has.
///
/// A block is free, or sequences hold it. One that is full can be *kept*: found by what it holds,
/// so that a later sequence which begins with the same ids shares it. A kept block that nobody
/// holds is idle; it is evicted where a block is wanted and none is free, the longest idle first.
///
/// Kept blocks are trees: each knows the kept block before it. Whoever holds a kept block holds all
/// before it too, so a block becomes idle no later than the one before it, and eviction takes
/// leaves alone. Two blocks are the same if their ids are equal and the blocks before them are the
/// same; the hash only finds them.
///
/// Pure. Threads: owned by one.
class BlockCache {
 public:
  explicit BlockCache(const BlockCacheOptions& options);

  std::uint32_t block_count() const { return static_cast<std::uint32_t>(blocks_.size()); }
  /// Blocks that `take` has: free and idle ones.
  std::uint32_t available_count() const {
    return static_cast<std::uint32_t>(free_.size() + idle_.size());
  }

  /// Those of them that hold nothing that is kept.
  std::uint32_t free_count() const { return static_cast<std::uint32_t>(free_.size()); }

  /// A block of one's own: the lowest free one, so that few pages of a large cache are ever
  /// touched, else what was idle longest. At least one must be available.
  std::uint32_t take();

  /// The kept blocks that hold the longest beginning of `ids`, in whole blocks. Nobody holds them
  /// more than before.
  std::vector<std::uint32_t> find(std::uint64_t scope, std::span<const std::uint32_t> ids) const;
  /// How many of these nobody holds: they are among those available.
  std::uint32_t idle_count(std::span<const std::uint32_t> blocks) const;
  /// One more sequence holds what `find` has found.
  void share(std::span<const std::uint32_t> blocks);

  /// Keeps a sequence's block that is full and computed and that it alone holds. before: the kept
  /// block in front of it, which it holds too; nullopt: it is its first. Where an equal one is kept
  /// already, the sequence holds that from now on, and `own` is free.
  ///
  /// The block that the sequence has now; it is not kept where another one has its key by chance.
  std::uint32_t keep(std::uint32_t own, std::uint64_t scope, std::optional<std::uint32_t> before,
                     std::span<const std::uint32_t> ids);

  /// A sequence holds its blocks no longer. They are in its order, and are let go from the last to
  /// the first.
  void release(std::span<const std::uint32_t> blocks);

  // What tests look at.
  std::uint32_t holder_count(std::uint32_t block) const { return blocks_[block].holder_count; }
  bool is_kept(std::uint32_t block) const { return blocks_[block].key.has_value(); }
  std::optional<std::uint32_t> before(std::uint32_t block) const { return blocks_[block].before; }

 private:
  struct Block {
    std::uint32_t holder_count = 0;
    std::optional<PrefixKey> key = {};         // of a kept one
    std::uint64_t scope = 0;                   // the same
    std::optional<std::uint32_t> before = {};  // nullopt: it holds the first positions
    std::vector<std::uint32_t> ids = {};
    std::uint64_t idle_number = 0;  // of an idle one: later ones have higher numbers
  };

  PrefixKey key_after(std::uint64_t scope, std::optional<std::uint32_t> before,
                      std::span<const std::uint32_t> ids) const;
  std::optional<std::uint32_t> find_same(const PrefixKey& key, std::uint64_t scope,
                                         std::optional<std::uint32_t> before,
                                         std::span<const std::uint32_t> ids) const;
  void hold(std::uint32_t block);
  void let_go(std::uint32_t block);
  void evict_one();

  const BlockCacheOptions options_;
  std::vector<Block> blocks_;
  std::set<std::uint32_t> free_;
  std::set<std::pair<std::uint64_t, std::uint32_t>> idle_;  // idle_number, block
  std::unordered_map<PrefixKey, std::uint32_t, PrefixKeyHash> kept_;
  std::uint64_t idle_count_ = 0;  // since the start
};

}  // namespace muster

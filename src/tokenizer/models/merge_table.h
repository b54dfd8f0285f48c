#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace muster {

/// What two neighbours become, and how soon: the lower the rank the sooner.
struct MergeRule {
  std::uint32_t rank = 0;
  TokenId merged_id = 0;
};

/// The merges of a BPE model as one flat table.
///
/// Threads: immutable once filled.
class MergeTable {
 public:
  explicit MergeTable(std::size_t count);

  /// The last rule for a pair stays.
  void insert(TokenId left, TokenId right, MergeRule rule);

  /// nullptr: the two do not merge.
  const MergeRule* find(TokenId left, TokenId right) const {
    const Slot& slot = slots_[slot_of(pair_of(left, right))];
    return slot.pair == kFree ? nullptr : &slot.rule;
  }

 private:
  struct Slot {
    std::uint64_t pair = kFree;
    MergeRule rule;
  };
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};  // no id is 2^32 - 1

  static std::uint64_t pair_of(TokenId left, TokenId right) {
    return (std::uint64_t{left} << 32) | right;
  }

  std::size_t slot_of(std::uint64_t pair) const {
    // Fibonacci hashing: the high bits of the product depend on all bits of the pair.
    std::size_t i = (pair * 0x9E3779B97F4A7C15ULL) >> shift_;
    while (slots_[i].pair != pair && slots_[i].pair != kFree) {
      i = (i + 1) & (slots_.size() - 1);
    }
    return i;
  }

  std::vector<Slot> slots_;  // a power of two, at most half full
  unsigned shift_ = 64;      // what leaves as many bits of a hash as number the slots
};

}  // namespace muster

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
  const MergeRule* find(TokenId left, TokenId right) const;

 private:
  struct Slot {
    std::uint64_t pair = kFree;
    MergeRule rule;
  };
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};  // no id is 2^32 - 1

  std::size_t slot_of(std::uint64_t pair) const;

  std::vector<Slot> slots_;  // at most half full
};

}  // namespace muster

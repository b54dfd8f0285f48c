#include "tokenizer/models/merge_table.h"

namespace muster {
MergeTable::MergeTable(std::size_t count) {
  std::size_t slot_count = 16;
  shift_ = 60;
  while (slot_count < count * 2) {
    slot_count *= 2;
    --shift_;
  }
  slots_.resize(slot_count);
}

void MergeTable::insert(TokenId left, TokenId right, MergeRule rule) {
  const std::uint64_t pair = pair_of(left, right);
  slots_[slot_of(pair)] = {pair, rule};
}

}  // namespace muster

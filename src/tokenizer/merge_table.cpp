#include "tokenizer/merge_table.h"

namespace muster {
namespace {

std::uint64_t pair_of(TokenId left, TokenId right) {
  return (std::uint64_t{left} << 32) | right;
}

}  // namespace

MergeTable::MergeTable(std::size_t count) {
  std::size_t slot_count = 16;
  while (slot_count < count * 2) {
    slot_count *= 2;
  }
  slots_.resize(slot_count);
}

std::size_t MergeTable::slot_of(std::uint64_t pair) const {
  const std::size_t mask = slots_.size() - 1;
  // Fibonacci hashing: the high bits of the product depend on all bits of the pair.
  std::size_t i = ((pair * 0x9E3779B97F4A7C15ULL) >> 20) & mask;
  while (slots_[i].pair != pair && slots_[i].pair != kFree) {
    i = (i + 1) & mask;
  }
  return i;
}

void MergeTable::insert(TokenId left, TokenId right, MergeRule rule) {
  const std::uint64_t pair = pair_of(left, right);
  slots_[slot_of(pair)] = {pair, rule};
}

const MergeRule* MergeTable::find(TokenId left, TokenId right) const {
  const Slot& slot = slots_[slot_of(pair_of(left, right))];
  return slot.pair == kFree ? nullptr : &slot.rule;
}

}  // namespace muster

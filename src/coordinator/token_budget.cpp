// Halves after an out-of-memory and grows back by a quarter, because the room that is left cannot
// be asked for, only tried. Only batches that filled more than half of the budget count as evidence
// that it fits.

#include "coordinator/token_budget.h"

#include <algorithm>

namespace muster {
namespace {

constexpr std::uint32_t kBatchesUntilGrowth = 20;

}  // namespace

void TokenBudget::on_out_of_memory(std::uint64_t token_count) {
  now_ = std::max<std::uint64_t>(1, std::min(now_, token_count / 2));
  failed_size_ = token_count;
  full_batch_count_ = 0;
}

bool TokenBudget::on_served(std::uint64_t token_count) {
  // Texts are whole: a batch that takes as many of one length as fit is fuller than half, and of a
  // small budget it may be one text. Smaller ones say nothing about the room. About what did not
  // fit and fits now does, however small the scheduler keeps batches for other reasons.
  const bool is_full = token_count > now_ / 2 || token_count >= failed_size_ - failed_size_ / 4;
  if (now_ == most_ || !is_full || ++full_batch_count_ < kBatchesUntilGrowth) return false;
  full_batch_count_ = 0;
  now_ = std::min(most_, now_ + std::max<std::uint64_t>(1, now_ / 4));
  return true;
}

}  // namespace muster

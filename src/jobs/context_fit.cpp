// A search by halves: what is left out from the oldest on makes a conversation only shorter.

#include "jobs/context_fit.h"

#include <algorithm>

namespace muster {
namespace {

// A reply that is cut off behind a few words is of no use.
constexpr std::uint32_t kReplyTokensLeast = 64;

}  // namespace

ReplyRoom reply_room(std::uint32_t reply_tokens_most, std::uint32_t context_tokens) {
  const auto least = std::min({reply_tokens_most, kReplyTokensLeast, context_tokens / 2});
  return {least, std::max(least, std::min(reply_tokens_most, context_tokens / 4))};
}

std::optional<std::size_t> pairs_left_out(std::size_t pair_count,
                                          const std::function<bool(std::size_t)>& fits) {
  if (fits(0)) return 0;
  if (pair_count == 0 || !fits(pair_count)) return std::nullopt;
  std::size_t too_few = 0;
  std::size_t enough = pair_count;
  while (too_few + 1 < enough) {
    const auto middle = (too_few + enough) / 2;
    (fits(middle) ? enough : too_few) = middle;
  }
  return enough;
}

}  // namespace muster

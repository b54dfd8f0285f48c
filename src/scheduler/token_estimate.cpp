#include "scheduler/token_estimate.h"

#include <algorithm>
#include <cmath>

namespace muster {
namespace {

// Some hundred texts of a paragraph each make the estimate: enough that one text in another script
// does not turn it over, few enough that it follows another corpus within a request or two.
constexpr double kBytesKept = 64 * 1024;

// A text of words has a token in some four bytes, in few vocabularies one in eight; white space may
// have none at all. Whoever sends much of it does not make the texts of others look free.
constexpr std::uint64_t kBytesATokenMost = 16;

}  // namespace

void TokenEstimate::learn(std::uint64_t byte_count, std::uint64_t token_count) {
  if (byte_count == 0) return;
  bytes_ += static_cast<double>(byte_count);
  tokens_ += static_cast<double>(token_count);
  if (bytes_ <= kBytesKept) return;
  tokens_ *= kBytesKept / bytes_;
  bytes_ = kBytesKept;
}

std::uint64_t TokenEstimate::tokens(std::uint64_t byte_count) const {
  if (!is_known()) return byte_count;
  const auto learnt = std::ceil(static_cast<double>(byte_count) * (tokens_ / bytes_));
  const auto least = byte_count / kBytesATokenMost + (byte_count % kBytesATokenMost == 0 ? 0 : 1);
  return std::max(static_cast<std::uint64_t>(learnt), least);
}

}  // namespace muster

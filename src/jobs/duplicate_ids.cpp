// A set of hashes in one array: open addressing, so that a million ids take 16 MiB and no more.

#include "jobs/duplicate_ids.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace muster {
namespace {

constexpr std::size_t kSlotsFirst = 1024;

}  // namespace

bool DuplicateIds::add(std::string_view id) {
  const std::uint64_t hash = std::max<std::uint64_t>(1, hash64(id));  // 0 stands for a free slot
  if (slots_.size() < 2 * (count_ + 1) && !is_full()) grow();
  return !insert(hash);
}

// False where it is there already.
bool DuplicateIds::insert(std::uint64_t hash) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  for (; slots_[at] != 0; at = (at + 1) & mask) {
    if (slots_[at] == hash) return false;
  }
  if (is_full()) return true;
  slots_[at] = hash;
  ++count_;
  return true;
}

void DuplicateIds::grow() {
  const auto before =
      std::exchange(slots_, std::vector<std::uint64_t>(std::max(kSlotsFirst, 2 * slots_.size())));
  count_ = 0;
  for (const auto hash : before) {
    if (hash != 0) insert(hash);
  }
}

}  // namespace muster

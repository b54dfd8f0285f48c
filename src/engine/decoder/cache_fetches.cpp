// Lists of what attention will read, cut into runs.

#include "engine/decoder/cache_fetches.h"

namespace muster::engine {

void CacheFetches::clear() {
  for (auto& member : members_) {
    member.begins.clear();
    member.runs = {};
  }
}

void CacheFetches::add(std::size_t member, std::span<const std::byte> bytes) {
  constexpr std::size_t kRun = FetchRuns::kLines * FetchRuns::kLine;
  auto& begins = members_[member].begins;
  for (std::size_t at = 0; at < bytes.size() && begins.size() < kRunsMost; at += kRun) {
    begins.push_back(bytes.data() + at);
  }
}

void CacheFetches::begin_layer(std::size_t offset) {
  for (auto& member : members_) {
    const auto* begin = member.begins.data();
    member.runs = {.next = begin, .end = begin + member.begins.size(), .offset = offset};
  }
}

}  // namespace muster::engine

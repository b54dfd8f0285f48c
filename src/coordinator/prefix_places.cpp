// The last block of a prompt counts as used first, so that its beginning is forgotten last, as in
// the worker's own cache.

#include "coordinator/prefix_places.h"

#include <algorithm>

namespace muster {

void PrefixPlaces::on_given(std::size_t index, std::span<const PrefixKey> keys,
                            std::size_t keys_most) {
  auto& group = groups_[index];
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    auto& used = group.last_used[*key];
    group.by_use.erase(used);  // of a new one nothing: the first use is number 1
    used = ++use_count_;
    group.by_use[used] = *key;
  }
  while (group.by_use.size() > keys_most) {
    group.last_used.erase(group.by_use.begin()->second);
    group.by_use.erase(group.by_use.begin());
  }
}

void PrefixPlaces::forget(std::size_t group) { groups_[group] = {}; }

std::size_t PrefixPlaces::match(std::size_t group, std::span<const PrefixKey> keys) const {
  const auto& known = groups_[group].last_used;
  const auto end = std::find_if(keys.begin(), keys.end(),
                                [&](const PrefixKey& key) { return known.count(key) == 0; });
  return static_cast<std::size_t>(end - keys.begin());
}

std::optional<std::size_t> PrefixPlaces::choose(std::span<const PrefixCandidate> candidates,
                                                std::span<const PrefixKey> keys) const {
  if (candidates.empty()) return std::nullopt;
  const auto least =
      std::min_element(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
        return a.load < b.load;
      })->load;
  std::optional<std::size_t> best;
  std::size_t longest = 0;
  for (const auto& candidate : candidates) {
    if (candidate.load != least) continue;
    const auto length = match(candidate.group, keys);
    if (best && length <= longest) continue;
    best = candidate.group;
    longest = length;
  }
  return best;
}

}  // namespace muster

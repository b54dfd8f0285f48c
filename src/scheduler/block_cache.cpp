// Blocks of a decoder's cache: free, held, idle. A block before another one is looked at by its
// number: it cannot be evicted and used for something else while one behind it is kept.

#include "scheduler/block_cache.h"

#include <algorithm>

#include "base/check.h"

namespace muster {

BlockCache::BlockCache(const BlockCacheOptions& options)
    : options_(options), blocks_(options.block_count) {
  for (std::uint32_t block = 0; block < options.block_count; ++block) free_.insert(block);
}

std::uint32_t BlockCache::take() {
  if (free_.empty()) evict_one();
  const auto block = *free_.begin();
  free_.erase(free_.begin());
  blocks_[block].holder_count = 1;
  return block;
}

void BlockCache::evict_one() {
  MUSTER_CHECK(!idle_.empty());
  const auto number = idle_.begin()->second;
  idle_.erase(idle_.begin());
  auto& block = blocks_[number];
  kept_.erase(*block.key);
  block = {};
  free_.insert(number);
}

PrefixKey BlockCache::key_after(std::uint64_t scope, std::optional<std::uint32_t> before,
                                std::span<const std::uint32_t> ids) const {
  return options_.key_of(before ? *blocks_[*before].key : prefix_root(scope), ids);
}

std::optional<std::uint32_t> BlockCache::find_same(const PrefixKey& key, std::uint64_t scope,
                                                   std::optional<std::uint32_t> before,
                                                   std::span<const std::uint32_t> ids) const {
  const auto found = kept_.find(key);
  if (found == kept_.end()) return std::nullopt;
  const auto& block = blocks_[found->second];
  const bool is_same = block.scope == scope && block.before == before &&
                       std::equal(block.ids.begin(), block.ids.end(), ids.begin(), ids.end());
  return is_same ? std::optional(found->second) : std::nullopt;
}

std::vector<std::uint32_t> BlockCache::find(std::uint64_t scope,
                                            std::span<const std::uint32_t> ids) const {
  std::vector<std::uint32_t> found;
  std::optional<std::uint32_t> before;
  for (std::size_t at = 0; at + options_.block_tokens <= ids.size(); at += options_.block_tokens) {
    const auto part = ids.subspan(at, options_.block_tokens);
    before = find_same(key_after(scope, before, part), scope, before, part);
    if (!before) break;
    found.push_back(*before);
  }
  return found;
}

std::uint32_t BlockCache::idle_count(std::span<const std::uint32_t> blocks) const {
  return static_cast<std::uint32_t>(std::count_if(
      blocks.begin(), blocks.end(), [&](auto block) { return blocks_[block].holder_count == 0; }));
}

void BlockCache::share(std::span<const std::uint32_t> blocks) {
  for (const auto block : blocks) hold(block);
}

void BlockCache::hold(std::uint32_t number) {
  auto& block = blocks_[number];
  if (block.holder_count++ == 0) idle_.erase({block.idle_number, number});
}

std::uint32_t BlockCache::keep(std::uint32_t own, std::uint64_t scope,
                               std::optional<std::uint32_t> before,
                               std::span<const std::uint32_t> ids) {
  const auto key = key_after(scope, before, ids);
  if (const auto same = find_same(key, scope, before, ids)) {
    hold(*same);
    let_go(own);
    return *same;
  }
  if (!kept_.emplace(key, own).second) return own;  // another one's, by chance
  auto& block = blocks_[own];
  block.key = key;
  block.scope = scope;
  block.before = before;
  block.ids.assign(ids.begin(), ids.end());
  return own;
}

// From the last one on: a block must not become idle before those behind it.
void BlockCache::release(std::span<const std::uint32_t> blocks) {
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) let_go(*block);
}

void BlockCache::let_go(std::uint32_t number) {
  auto& block = blocks_[number];
  MUSTER_CHECK(block.holder_count > 0);
  if (--block.holder_count > 0) return;
  if (!block.key) {
    free_.insert(number);
    return;
  }
  block.idle_number = idle_count_++;
  idle_.emplace(block.idle_number, number);
}

}  // namespace muster

// Keys stay within this machine and this run: their bytes are hashed as they lie in memory.

#include "scheduler/prefix_key.h"

namespace muster {

PrefixKey prefix_root(std::uint64_t scope) { return {.high = 0, .low = scope}; }

PrefixKey next_prefix_key(const PrefixKey& before, std::span<const std::uint32_t> ids) {
  std::vector<std::byte> bytes;
  bytes.reserve(sizeof before.high + sizeof before.low + ids.size_bytes());
  const auto add = [&](auto numbers) {
    const auto part = std::as_bytes(numbers);
    bytes.insert(bytes.end(), part.begin(), part.end());
  };
  add(std::span(&before.high, 1));
  add(std::span(&before.low, 1));
  add(ids);
  return hash128(bytes);
}

std::vector<PrefixKey> prefix_keys(std::uint64_t scope, std::span<const std::uint32_t> ids,
                                   std::uint32_t block_tokens) {
  std::vector<PrefixKey> keys;
  keys.reserve(ids.size() / block_tokens);
  auto key = prefix_root(scope);
  for (std::size_t at = 0; at + block_tokens <= ids.size(); at += block_tokens) {
    key = next_prefix_key(key, ids.subspan(at, block_tokens));
    keys.push_back(key);
  }
  return keys;
}

}  // namespace muster

#include "tokenizer/models/word_cache.h"

#include <algorithm>
#include <bit>

namespace muster {

WordCache::WordCache(std::size_t text_bytes)
    : entries_(std::bit_ceil(std::clamp<std::size_t>(text_bytes / kTextBytes, 2, kEntriesMost))) {}

void WordCache::keep(std::string_view word, std::span<const TokenId> ids) {
  if (word.size() > kWordSizeMax || ids.size() > kIdsMax) {
    return;
  }
  const std::uint64_t hash = hash_short_text(word);
  const std::size_t first = place_of(hash);
  entries_[first ^ 1] = entries_[first];
  Entry& entry = entries_[first];
  entry.hash = hash;
  entry.word_size = static_cast<std::uint8_t>(word.size());
  entry.id_count = static_cast<std::uint8_t>(ids.size());
  std::copy(word.begin(), word.end(), entry.word.begin());
  std::copy(ids.begin(), ids.end(), entry.ids.begin());
}

}  // namespace muster

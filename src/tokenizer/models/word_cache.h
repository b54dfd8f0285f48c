#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/models/text_hash.h"
#include "tokenizer/tokenizer.h"

namespace muster {

/// Words that were cut lately with their ids. Most words of a text are a few thousand that come
/// again; a long one is not worth its place and is never kept.
///
/// Owner: one thread's scratch. Cost: a hit is one cache line; memory is fixed: 2 MiB for many
/// texts, and for a single one 64 bytes for each 4 of its own, 2 MiB at most.
class WordCache {
 public:
  WordCache() : WordCache(kEntriesMost * kTextBytes) {}
  explicit WordCache(std::size_t text_bytes);

  /// Appends the ids of a word that is kept here; false if it is not.
  bool append(std::string_view word, std::vector<TokenId>& ids) const {
    if (word.size() > kWordSizeMax) {
      return false;
    }
    const std::uint64_t hash = hash_short_text(word);
    const std::size_t first = place_of(hash);
    for (const std::size_t index : {first, first ^ 1}) {
      const Entry& entry = entries_[index];
      if (entry.hash == hash && entry.word_size == word.size() &&
          std::memcmp(entry.word.data(), word.data(), word.size()) == 0) {
        ids.insert(ids.end(), entry.ids.begin(), entry.ids.begin() + entry.id_count);
        return true;
      }
    }
    return false;
  }

  /// Keeps the ids of a word, in place of an older one that happens to share its two places.
  void keep(std::string_view word, std::span<const TokenId> ids);

 private:
  static constexpr std::size_t kEntriesMost = 1U << 15;
  static constexpr std::size_t kTextBytes =
      4;  // an entry for so many of a text: few words are shorter
  static constexpr std::size_t kWordSizeMax = 22;  // with the rest an entry is one cache line
  static constexpr std::size_t kIdsMax = 8;

  struct alignas(64) Entry {
    std::uint64_t hash = 0;
    std::uint8_t word_size = 0;  // 0: free, as no word is empty
    std::uint8_t id_count = 0;
    std::array<char, kWordSizeMax> word{};
    std::array<TokenId, kIdsMax> ids{};
  };
  static_assert(sizeof(Entry) == 64);

  std::size_t place_of(std::uint64_t hash) const { return hash & (entries_.size() - 1); }

  std::vector<Entry> entries_;  // a power of two, and two at least
};

}  // namespace muster

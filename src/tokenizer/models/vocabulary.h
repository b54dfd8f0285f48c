#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace muster {

/// From the text of a token to its id, as one flat table: open addressing, the keys in one string.
///
/// Threads: immutable once filled.
class TokenTable {
 public:
  /// Makes room for `count` tokens of `bytes` bytes in all.
  void reserve(std::size_t count, std::size_t bytes);

  /// The last id of equal texts stays.
  void insert(std::string_view token, TokenId id);

  std::optional<TokenId> find(std::string_view token) const;

  std::size_t count() const { return count_; }

  /// The longest token in bytes; no longer text is worth a look.
  std::size_t size_max() const { return size_max_; }

  /// Calls `visit(std::string_view, TokenId)` for each token, in no order.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const Slot& slot : slots_) {
      if (slot.is_used) {
        visit(std::string_view(keys_).substr(slot.begin, slot.size), slot.id);
      }
    }
  }

 private:
  struct Slot {
    std::size_t begin = 0;  // of the key in keys_
    std::uint32_t size = 0;
    std::uint32_t tag = 0;  // high half of the hash, so that most misses touch no key
    TokenId id = 0;
    bool is_used = false;
  };

  std::size_t slot_of(std::string_view token, std::uint64_t hash) const;
  void grow(std::size_t slot_count);

  std::vector<Slot> slots_;
  std::string keys_;
  std::size_t count_ = 0;
  std::size_t size_max_ = 0;
};

/// The tokens of a model, both ways.
///
/// Threads: immutable once made.
class Vocabulary {
 public:
  explicit Vocabulary(TokenTable table);

  const TokenTable& table() const { return *table_; }
  std::optional<TokenId> id_of(std::string_view token) const { return table_->find(token); }

  /// The text of an id; nullopt for a hole. Of two texts with one id the first in byte order.
  std::optional<std::string_view> token_of(TokenId id) const;

  std::size_t count() const { return table_->count(); }

  /// One above the highest id.
  std::uint64_t id_end() const { return by_id_.empty() ? 0 : std::uint64_t{by_id_.back().id} + 1; }

 private:
  struct Entry {
    TokenId id;
    std::string_view token;  // into table_
  };

  std::unique_ptr<const TokenTable> table_;  // stays where it is when the vocabulary moves
  std::vector<Entry> by_id_;                 // ascending
};

}  // namespace muster

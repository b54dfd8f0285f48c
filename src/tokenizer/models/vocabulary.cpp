// One flat table with linear probing, at most half full, so a look-up ends after a step or two.
// All keys lie in one string: a vocabulary of 250,000 tokens is two arrays rather than as many
// small strings. Slots keep 32 bits of the hash and the size, so that a wrong slot is passed
// without reading its key.

#include "tokenizer/models/vocabulary.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "tokenizer/models/text_hash.h"

namespace muster {
namespace {

constexpr std::size_t kSlotsMin = 16;

std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }

}  // namespace

void TokenTable::reserve(std::size_t count, std::size_t bytes) {
  keys_.reserve(bytes);
  std::size_t slot_count = kSlotsMin;
  while (slot_count < count * 2) {
    slot_count *= 2;
  }
  if (slot_count > slots_.size()) {
    grow(slot_count);
  }
}

std::size_t TokenTable::slot_of(std::string_view token, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    const bool is_here = !slot.is_used || (slot.tag == tag_of(hash) && slot.size == token.size() &&
                                           keys_.compare(slot.begin, slot.size, token) == 0);
    if (is_here) {
      return i;
    }
  }
}

void TokenTable::insert(std::string_view token, TokenId id) {
  if ((count_ + 1) * 2 > slots_.size()) {
    grow(std::max(kSlotsMin, slots_.size() * 2));
  }
  const std::uint64_t hash = hash_short_text(token);
  Slot& slot = slots_[slot_of(token, hash)];
  if (!slot.is_used) {
    slot = {keys_.size(), static_cast<std::uint32_t>(token.size()), tag_of(hash), id, true};
    keys_.append(token);
    size_max_ = std::max(size_max_, token.size());
    ++count_;
  }
  slot.id = id;
}

std::optional<TokenId> TokenTable::find(std::string_view token) const {
  if (token.size() > size_max_ || slots_.empty()) {
    return std::nullopt;
  }
  const Slot& slot = slots_[slot_of(token, hash_short_text(token))];
  return slot.is_used ? std::optional(slot.id) : std::nullopt;
}

void TokenTable::grow(std::size_t slot_count) {
  std::vector<Slot> old(slot_count);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.is_used) {
      const auto token = std::string_view(keys_).substr(slot.begin, slot.size);
      slots_[slot_of(token, hash_short_text(token))] = slot;
    }
  }
}

Vocabulary::Vocabulary(TokenTable table)
    : table_(std::make_unique<const TokenTable>(std::move(table))) {
  by_id_.reserve(table_->count());
  table_->for_each([&](std::string_view token, TokenId id) { by_id_.push_back({id, token}); });
  std::sort(by_id_.begin(), by_id_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.id, a.token) < std::tie(b.id, b.token);
  });
}

std::optional<std::string_view> Vocabulary::token_of(TokenId id) const {
  const auto entry = std::lower_bound(by_id_.begin(), by_id_.end(), id,
                                      [](const Entry& e, TokenId wanted) { return e.id < wanted; });
  return entry != by_id_.end() && entry->id == id ? std::optional(entry->token) : std::nullopt;
}

}  // namespace muster

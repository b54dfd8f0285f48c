// Added tokens are cut out of the text before anything splits it, so two tries hold them: one
// for the raw text, one for the normalised. A match is the leftmost, and of those the longest,
// as in the library. Only the root has an array of children: a text is scanned byte by byte for
// a possible beginning, and few bytes are one. Below it a short list per node costs less memory.

#include "tokenizer/added_tokens.h"

#include <algorithm>

#include "tokenizer/normalize/unicode_classes.h"
#include "tokenizer/utf8.h"

namespace muster {
namespace {

// A trie has a node for each byte, which takes some seventy. Models with a hundred thousand added
// tokens have 3 MB of them.
constexpr std::size_t kTextBytesMax = std::size_t{16} << 20;

bool ends_with_word(std::string_view text) {
  return !text.empty() &&
         is_in_class(utf8_char_before(text, text.size()).code_point, CharacterClass::Word);
}

bool starts_with_word(std::string_view text) {
  return !text.empty() && is_in_class(utf8_char_at(text, 0).code_point, CharacterClass::Word);
}

std::size_t space_before(std::string_view text, std::size_t end) {
  while (end > 0) {
    const Utf8Char c = utf8_char_before(text, end);
    if (!is_in_class(c.code_point, CharacterClass::Space)) {
      break;
    }
    end -= c.size;
  }
  return end;
}

std::size_t space_after(std::string_view text, std::size_t begin) {
  while (begin < text.size()) {
    const Utf8Char c = utf8_char_at(text, begin);
    if (!is_in_class(c.code_point, CharacterClass::Space)) {
      break;
    }
    begin += c.size;
  }
  return begin;
}

/// A token that can lie across a cut, or that reaches across one for its white space.
bool hinders_cuts(const AddedToken& token, std::string_view text) {
  if (!token.normalized) {
    return false;  // looked for in the whole text
  }
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) > ' ' && static_cast<unsigned char>(c) < 0x7F;
  });
  return token.rstrip || !is_plain;
}

}  // namespace

std::size_t TextTrie::child_of(std::size_t node, char byte) const {
  for (const auto& [label, child] : nodes_[node].children) {
    if (label == byte) {
      return child;
    }
  }
  return kNone;
}

Status TextTrie::insert(std::string_view text, std::size_t value) {
  if (text.empty()) {
    return Error{ErrorKind::Unsupported, "tokenizer.json: an added token is empty when normalised"};
  }
  std::size_t node = 0;
  for (const char byte : text) {
    std::size_t child = child_of(node, byte);
    if (child == kNone) {
      child = nodes_.size();
      nodes_.emplace_back();
      nodes_[node].children.emplace_back(byte, child);
      if (node == 0) {
        root_children_[static_cast<unsigned char>(byte)] = child;
      }
    }
    node = child;
  }
  if (nodes_[node].value != kNone) {
    return Error{ErrorKind::Unsupported,
                 "tokenizer.json: two added tokens are the same text: " + std::string(text)};
  }
  nodes_[node].value = value;
  return Done{};
}

std::optional<TextTrie::Match> TextTrie::match_at(std::string_view text, std::size_t at) const {
  std::optional<Match> longest;
  std::size_t node = root_children_[static_cast<unsigned char>(text[at])];
  for (std::size_t end = at + 1; node != 0 && node != kNone; ++end) {
    if (nodes_[node].value != kNone) {
      longest = Match{at, end, nodes_[node].value};
    }
    if (end == text.size()) {
      break;
    }
    node = child_of(node, text[end]);
  }
  return longest;
}

std::optional<TextTrie::Match> TextTrie::find(std::string_view text, std::size_t from,
                                              std::size_t begin_end) const {
  if (is_empty()) {
    return std::nullopt;
  }
  for (std::size_t at = from; at < begin_end; ++at) {
    if (root_children_[static_cast<unsigned char>(text[at])] != 0) {
      if (const auto match = match_at(text, at)) {
        return match;
      }
    }
  }
  return std::nullopt;
}

TokenId AddedTokens::assign_id(const std::string& content, const Model& model) {
  if (const auto known = ids_.find(content); known != ids_.end()) {
    return known->second;
  }
  if (const auto id = model.vocabulary().id_of(content)) {
    return *id;
  }
  return next_id_++;
}

Result<AddedTokens> AddedTokens::make(const std::vector<AddedToken>& tokens, const Model& model,
                                      const Normalizer* normalizer) {
  AddedTokens added;
  // The file states ids too, but the library counts on from the size of the vocabulary.
  added.next_id_ = static_cast<TokenId>(model.vocabulary().count());
  std::size_t text_bytes = 0;
  for (const AddedToken& token : tokens) {
    if (token.content.empty()) {
      continue;
    }
    const TokenId id = added.assign_id(token.content, model);
    std::string text = token.content;
    if (token.normalized && normalizer != nullptr) {
      std::string spare;
      normalizer->normalize(text, spare, SegmentEdges{});
    }
    text_bytes += text.size();
    if (text_bytes > kTextBytesMax) {
      return Error{
          ErrorKind::Unsupported,
          "tokenizer.json: the added tokens have more bytes than " + std::to_string(kTextBytesMax)};
    }
    added.ids_[token.content] = id;
    added.entries_[id] = Entry{token, text};
    if (token.special) {
      added.special_.insert(token.content);
    }
  }
  MUSTER_TRY(added.fill_tries());
  return added;
}

Status AddedTokens::fill_tries() {
  for (const auto& [id, entry] : entries_) {
    TextTrie& trie = entry.token.normalized ? normalized_ : raw_;
    MUSTER_TRY(trie.insert(entry.text, id));
    allows_cuts_ = allows_cuts_ && !hinders_cuts(entry.token, entry.text);
  }
  return Done{};
}

AddedTokens::Search AddedTokens::find(const TextTrie& trie, std::string_view text,
                                      Bounds bounds) const {
  while (const auto match = trie.find(text, bounds.from, bounds.begin_end)) {
    bounds.from = match->end;
    const auto id = static_cast<TokenId>(match->value);
    const AddedToken& token = entries_.at(id).token;
    if (token.single_word && (ends_with_word(text.substr(0, match->begin)) ||
                              starts_with_word(text.substr(match->end)))) {
      continue;  // its bytes are used up all the same
    }
    Found found{match->begin, match->end, id};
    if (token.lstrip) {
      found.begin = std::max(space_before(text, match->begin), bounds.taken);
    }
    if (token.rstrip) {
      found.end = space_after(text, match->end);
    }
    return {found, match->end};
  }
  return {std::nullopt, std::max(bounds.from, bounds.begin_end)};
}

std::optional<std::string_view> AddedTokens::text_of(TokenId id) const {
  const auto entry = entries_.find(id);
  return entry == entries_.end() ? std::nullopt
                                 : std::optional<std::string_view>(entry->second.text);
}

std::uint64_t AddedTokens::id_end() const {
  return entries_.empty() ? 0 : std::uint64_t{entries_.rbegin()->first} + 1;
}

}  // namespace muster

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tokenizer/models/model.h"
#include "tokenizer/normalize/normalizer.h"

namespace muster {

/// A token that is found in the text itself, before any splitting.
struct AddedToken {
  std::string content;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space on its left with it
  bool rstrip = false;
  bool normalized = false;  // looked for in the normalised text, in its own normalised form
  bool special = false;     // left out when decoding asks for it
};

/// Finds the leftmost longest of a set of texts.
///
/// Threads: immutable once filled.
class TextTrie {
 public:
  struct Match {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t value = 0;
  };

  /// Errors: Unsupported for an empty text, or for one that is there already.
  Status insert(std::string_view text, std::size_t value);

  bool is_empty() const { return nodes_.size() == 1; }

  /// The first match that begins in [from, begin_end); it may end anywhere.
  std::optional<Match> find(std::string_view text, std::size_t from, std::size_t begin_end) const;

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Node {
    std::vector<std::pair<char, std::size_t>> children;  // a handful at most, except at the root
    std::size_t value = kNone;
  };

  std::size_t child_of(std::size_t node, char byte) const;
  std::optional<Match> match_at(std::string_view text, std::size_t at) const;

  std::vector<Node> nodes_{1};
  std::array<std::size_t, 256> root_children_{};  // 0: none
};

/// The added tokens with the ids that the library gives them.
///
/// Threads: immutable once made.
/// Source: tokenizer/added_vocabulary.rs of huggingface/tokenizers 0.23.
class AddedTokens {
 public:
  /// Where an added token stands in a text, with the white space that it takes along.
  struct Found {
    std::size_t begin = 0;
    std::size_t end = 0;
    TokenId id = 0;
  };
  struct Search {
    std::optional<Found> found;
    std::size_t resume = 0;  // where the next search begins
  };

  /// `model` gives the ids of contents that it knows; `normalizer` may be null.
  ///
  /// Errors: Unsupported for two tokens that come out equal, one that comes out empty, or more than
  /// 16 MiB of them.
  static Result<AddedTokens> make(const std::vector<AddedToken>& tokens, const Model& model,
                                  const Normalizer* normalizer);

  /// The next token of the raw text that begins in [from, begin_end); white space before `taken`
  /// belongs to an earlier one.
  Search find_raw(std::string_view text, std::size_t from, std::size_t begin_end,
                  std::size_t taken) const {
    return find(raw_, text, {from, begin_end, taken});
  }

  /// The same for tokens that are looked for in the normalised text.
  Search find_normalized(std::string_view text, std::size_t from, std::size_t taken) const {
    return find(normalized_, text, {from, text.size(), taken});
  }

  bool has_normalized() const { return !normalized_.is_empty(); }

  /// Whether a text may be cut before a space between two words although tokens are looked for in
  /// its parts: no normalised token holds or takes a space on its right, or a Chinese character.
  bool allows_cuts() const { return allows_cuts_; }

  /// The text of an added token's id as decoding sees it; nullopt for any other id.
  std::optional<std::string_view> text_of(TokenId id) const;

  /// The id of an added token by its content.
  std::optional<TokenId> id_of(std::string_view content) const {
    const auto found = ids_.find(std::string(content));
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }

  bool is_special(std::string_view text) const { return special_.count(std::string(text)) != 0; }

  /// One above the highest id.
  std::uint64_t id_end() const;

 private:
  struct Entry {
    AddedToken token;
    std::string text;  // the content, normalised where the token is
  };

  TokenId assign_id(const std::string& content, const Model& model);
  Status fill_tries();
  struct Bounds {
    std::size_t from;
    std::size_t begin_end;
    std::size_t taken;
  };
  Search find(const TextTrie& trie, std::string_view text, Bounds bounds) const;

  std::map<std::string, TokenId> ids_;
  std::map<TokenId, Entry> entries_;
  std::set<std::string> special_;
  TextTrie raw_;
  TextTrie normalized_;
  TokenId next_id_ = 0;
  bool allows_cuts_ = true;
};

}  // namespace muster

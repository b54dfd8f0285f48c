// Greedy longest match from the left, after Devlin et al. 2018. The pieces that continue a word
// are kept in a table of their own without their prefix, so that a look-up takes a span of the
// word as it is and puts no text together. One piece that is missing makes the whole word
// unknown.

#include <algorithm>
#include <utility>

#include "tokenizer/models/model.h"
#include "tokenizer/utf8.h"

namespace muster {
namespace {

class WordPiece final : public Model {
 public:
  WordPiece(Vocabulary vocabulary, TokenTable continuations, TokenId unk_id,
            std::uint64_t chars_max)
      : vocabulary_(std::move(vocabulary)),
        continuations_(std::move(continuations)),
        unk_id_(unk_id),
        chars_max_(chars_max) {}

  void tokenize(std::string_view word, ModelBuffers&, std::vector<TokenId>& ids) const override {
    const std::size_t size_before = ids.size();
    if (is_too_long(word)) {
      ids.push_back(unk_id_);
      return;
    }
    for (std::size_t begin = 0; begin < word.size();) {
      const TokenTable& table = begin == 0 ? vocabulary_.table() : continuations_;
      const auto found = longest_token(word, begin, table);
      if (!found) {
        ids.resize(size_before);
        ids.push_back(unk_id_);
        return;
      }
      ids.push_back(found->first);
      begin = found->second;
    }
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  bool is_too_long(std::string_view word) const {
    if (word.size() <= chars_max_) {
      return false;
    }
    const auto chars = std::count_if(word.begin(), word.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    });
    return static_cast<std::uint64_t>(chars) > chars_max_;
  }

  /// The id and end of the longest token that begins at `begin`.
  static std::optional<std::pair<TokenId, std::size_t>> longest_token(std::string_view word,
                                                                      std::size_t begin,
                                                                      const TokenTable& table) {
    std::size_t end = std::min(word.size(), begin + table.size_max());
    // The bound by size may fall within a character; a token never ends there.
    while (end < word.size() && end > begin &&
           (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80) {
      --end;
    }
    while (end > begin) {
      if (const auto id = table.find(word.substr(begin, end - begin))) {
        return std::pair(*id, end);
      }
      end -= std::min(utf8_char_before(word, end).size, end - begin);
    }
    return std::nullopt;
  }

  const Vocabulary vocabulary_;
  const TokenTable continuations_;  // tokens with the prefix, written here without it
  const TokenId unk_id_;
  const std::uint64_t chars_max_;
};

}  // namespace

Result<std::unique_ptr<const Model>> make_wordpiece(TokenTable tokens,
                                                    const WordPieceOptions& options) {
  const auto unk_id = tokens.find(options.unk_token);
  if (!unk_id) {
    return Error{
        ErrorKind::Corrupt,
        "tokenizer.json: the unknown token is not in the vocabulary: " + options.unk_token};
  }
  TokenTable continuations;
  const std::string& prefix = options.continuing_subword_prefix;
  tokens.for_each([&](std::string_view token, TokenId id) {
    if (token.substr(0, prefix.size()) == prefix) {
      continuations.insert(token.substr(prefix.size()), id);
    }
  });
  return std::unique_ptr<const Model>(
      std::make_unique<WordPiece>(Vocabulary(std::move(tokens)), std::move(continuations), *unk_id,
                                  options.max_input_chars_per_word));
}

}  // namespace muster

// Merging by score, as SentencePiece and llama.cpp do it. A candidate in the heap remembers the
// size of both parts together. If either has grown since, the sum differs and the candidate is
// dropped, so nothing needs to be removed from the middle of the heap. Cost: O(n log n) for n
// characters.

#include <algorithm>
#include <array>
#include <utility>

#include "tokenizer/models/model.h"
#include "tokenizer/models/sentencepiece_text.h"
#include "tokenizer/utf8.h"

// SentencePiece's own order of merging. It needs no list of merges: any two neighbours whose joined
// text is a token may merge, and the token's score says how soon. Symbols are spans of the word, so
// that a look-up needs no text to be put together.

namespace muster {
namespace {

constexpr std::size_t kCharacterBytesMost = 4;  // in UTF-8

/// A span of the word with its neighbours.
struct Span {
  std::size_t begin = 0;
  std::size_t size = 0;          // 0: swallowed by its left neighbour
  std::ptrdiff_t previous = -1;  // index, -1 for none
  std::ptrdiff_t next = -1;
};

struct Candidate {
  float score = 0;
  std::size_t left = 0;
  std::size_t right = 0;
  std::size_t size = 0;  // of both; another sum means that one of them has changed
};

/// Heap order: the highest score on top, of equal ones the leftmost.
bool comes_later(const Candidate& a, const Candidate& b) {
  return a.score < b.score || (a.score == b.score && a.left > b.left);
}

/// The spans of one word while they merge.
class Merging {
 public:
  Merging(std::string_view word, const TokenTable& tokens, const std::vector<float>& scores)
      : word_(word), tokens_(tokens), scores_(scores) {
    for_each_utf8_char(word, [&](char32_t, std::size_t begin, std::size_t end) {
      const auto index = static_cast<std::ptrdiff_t>(spans_.size());
      if (!spans_.empty()) spans_.back().next = index;
      spans_.push_back({begin, end - begin, index - 1, -1});
    });
  }

  const std::vector<Span>& merge() {
    for (std::size_t i = 0; i + 1 < spans_.size(); ++i) propose(i);
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end(), comes_later);
      const auto top = queue_.back();
      queue_.pop_back();
      auto& left = spans_[top.left];
      auto& right = spans_[top.right];
      if (left.size == 0 || right.size == 0 || left.size + right.size != top.size) continue;
      left.size += right.size;
      right.size = 0;
      left.next = right.next;
      if (left.next >= 0) {
        spans_[static_cast<std::size_t>(left.next)].previous =
            static_cast<std::ptrdiff_t>(top.left);
      }
      if (left.previous >= 0) propose(static_cast<std::size_t>(left.previous));
      propose(top.left);
    }
    return spans_;
  }

 private:
  /// Queues the span and its right neighbour, if they have one token together.
  void propose(std::size_t at) {
    const auto& left = spans_[at];
    if (left.next < 0) return;
    const auto right = static_cast<std::size_t>(left.next);
    const auto size = left.size + spans_[right].size;
    if (size > tokens_.size_max()) return;
    const auto id = tokens_.find(word_.substr(left.begin, size));
    if (!id) return;
    queue_.push_back({scores_[*id], at, right, size});
    std::push_heap(queue_.begin(), queue_.end(), comes_later);
  }

  const std::string_view word_;
  const TokenTable& tokens_;
  const std::vector<float>& scores_;
  std::vector<Span> spans_;
  std::vector<Candidate> queue_;
};

class ScoreBpe final : public Model {
 public:
  ScoreBpe(Vocabulary vocabulary, std::vector<float> scores, std::optional<TokenId> unknown_id,
           std::array<std::optional<TokenId>, 256> byte_ids)
      : vocabulary_(std::move(vocabulary)),
        scores_(std::move(scores)),
        unknown_id_(unknown_id),
        byte_ids_(byte_ids) {}

  void tokenize(std::string_view word, ModelBuffers& /*buffers*/,
                std::vector<TokenId>& ids) const override {
    Merging merging(word, vocabulary_.table(), scores_);
    for (const auto& span : merging.merge()) {
      if (span.size == 0) continue;
      const auto text = word.substr(span.begin, span.size);
      if (const auto id = vocabulary_.id_of(text)) {
        ids.push_back(*id);
      } else {
        add_bytes(text, ids);
      }
    }
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }

  // What is no token is one character.
  std::optional<std::size_t> token_bytes_most() const override {
    return std::max(vocabulary_.table().size_max(), kCharacterBytesMost);
  }

 private:
  void add_bytes(std::string_view text, std::vector<TokenId>& ids) const {
    const auto id_of = [&](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
    if (!std::all_of(text.begin(), text.end(), [&](char c) { return id_of(c).has_value(); })) {
      ids.push_back(*unknown_id_);
      return;
    }
    for (const char c : text) ids.push_back(*id_of(c));
  }

  const Vocabulary vocabulary_;
  const std::vector<float> scores_;
  const std::optional<TokenId> unknown_id_;
  const std::array<std::optional<TokenId>, 256> byte_ids_;
};

}  // namespace

Result<std::unique_ptr<const Model>> make_score_bpe(TokenTable tokens, std::vector<float> scores,
                                                    std::optional<TokenId> unknown_id) {
  std::array<std::optional<TokenId>, 256> byte_ids;
  for (unsigned byte = 0; byte < byte_ids.size(); ++byte) {
    byte_ids[byte] = tokens.find(byte_token(static_cast<std::uint8_t>(byte)));
    if (byte_ids[byte] || unknown_id) continue;
    return Error{ErrorKind::Unsupported,
                 "a byte without a token, in a vocabulary without an unknown token: " +
                     byte_token(static_cast<std::uint8_t>(byte))};
  }
  return std::unique_ptr<const Model>(std::make_unique<ScoreBpe>(
      Vocabulary(std::move(tokens)), std::move(scores), unknown_id, byte_ids));
}

}  // namespace muster

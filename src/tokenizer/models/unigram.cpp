// The best way through a word by dynamic programming over its bytes: each place keeps the best
// path that ends there, and pieces extend it to the right. Of two equal paths the first found
// stays, as in the library. Unknown characters cost ten more than the worst piece and are joined
// at the end, when the path is known.
//
// Source: Kudo 2018, "Subword Regularization"; Viterbi 1967.

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "tokenizer/models/model.h"
#include "tokenizer/models/piece_trie.h"
#include "tokenizer/utf8.h"

namespace muster {
namespace {

constexpr double kUnknownPenalty = 10;  // K_UNK_PENALTY of the reference

using Path = ModelBuffers::PathEnd;

class Unigram final : public Model {
 public:
  Unigram(Vocabulary vocabulary, PieceTrie trie, std::vector<double> scores, TokenId unk_id)
      : vocabulary_(std::move(vocabulary)),
        trie_(std::move(trie)),
        scores_(std::move(scores)),
        unk_id_(unk_id),
        unk_score_(*std::min_element(scores_.begin(), scores_.end()) - kUnknownPenalty) {}

  void fall_back_to_bytes() {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    for (std::size_t byte = 0; byte < byte_ids_.size(); ++byte) {
      const std::array<char, 6> name = {'<', '0', 'x', kHex[byte / 16], kHex[byte % 16], '>'};
      byte_ids_[byte] = vocabulary_.id_of({name.data(), name.size()});
    }
  }

  void tokenize(std::string_view word, ModelBuffers& buffers,
                std::vector<TokenId>& ids) const override {
    std::vector<Path>& paths = buffers.paths;
    paths.assign(word.size() + 1, Path{});
    for (std::size_t begin = 0; begin < word.size();) {
      const std::size_t character_size = utf8_char_at(word, begin).size;
      extend_paths(word.substr(begin), character_size, paths.data() + begin);
      begin += character_size;
    }
    append_best(word, paths, ids);
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  /// Goes on from `here`, where the best path is known, by every piece at the front of `rest`.
  void extend_paths(std::string_view rest, std::size_t character_size, Path* here) const {
    bool has_single = false;  // a piece of one character
    const double score_here = here->score;
    const auto offer = [&](std::size_t size, double score, TokenId id) {
      Path& target = here[size];
      if (target.size == 0 || score > target.score) {
        target = {score, id, static_cast<std::uint32_t>(size)};
      }
    };
    trie_.for_each_prefix(rest, [&](std::size_t size, TokenId id) {
      offer(size, scores_[id] + score_here, id);
      has_single = has_single || size == character_size;
    });
    if (!has_single) {
      offer(character_size, unk_score_ + score_here, unk_id_);
    }
  }

  void append_best(std::string_view word, const std::vector<Path>& paths,
                   std::vector<TokenId>& ids) const {
    const auto first = static_cast<std::ptrdiff_t>(ids.size());
    // Paths are known from their ends only, so ids come out last first and are turned around
    // once.
    for (std::size_t end = word.size(); end > 0;) {
      std::size_t begin = end - paths[end].size;
      if (paths[end].id != unk_id_) {
        ids.push_back(paths[end].id);
      } else {
        while (begin > 0 && paths[begin].id == unk_id_) {
          begin -= paths[begin].size;
        }
        append_unknown_reversed(word.substr(begin, end - begin), ids);
      }
      end = begin;
    }
    std::reverse(ids.begin() + first, ids.end());
  }

  /// Unknown characters side by side are one: a token after all if they happen to spell one, else
  /// their bytes if each is a token, else the unknown token.
  void append_unknown_reversed(std::string_view text, std::vector<TokenId>& ids) const {
    if (const auto id = vocabulary_.id_of(text)) {
      ids.push_back(*id);
      return;
    }
    const auto id_of = [this](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
    if (!std::all_of(text.begin(), text.end(), id_of)) {
      ids.push_back(unk_id_);
      return;
    }
    std::for_each(text.rbegin(), text.rend(), [&](char c) { ids.push_back(*id_of(c)); });
  }

  const Vocabulary vocabulary_;
  const PieceTrie trie_;
  const std::vector<double> scores_;  // by id
  const TokenId unk_id_;
  const double unk_score_;
  std::array<std::optional<TokenId>, 256> byte_ids_{};  // none without byte_fallback
};

}  // namespace

Result<std::unique_ptr<const Model>> make_unigram(TokenTable tokens, std::vector<double> scores,
                                                  const UnigramOptions& options) {
  if (options.unk_id >= scores.size()) {
    return Error{ErrorKind::Corrupt, "tokenizer.json: unk_id is not in the vocabulary: " +
                                         std::to_string(options.unk_id)};
  }
  Vocabulary vocabulary(std::move(tokens));
  std::vector<PieceTrie::Piece> pieces;
  pieces.reserve(vocabulary.count());
  vocabulary.table().for_each(
      [&](std::string_view token, TokenId id) { pieces.emplace_back(token, id); });
  auto trie = MUSTER_TRY(PieceTrie::make(std::move(pieces)));
  auto model = std::make_unique<Unigram>(std::move(vocabulary), std::move(trie), std::move(scores),
                                         static_cast<TokenId>(options.unk_id));
  if (options.byte_fallback) {
    model->fall_back_to_bytes();
  }
  return std::unique_ptr<const Model>(std::move(model));
}

}  // namespace muster

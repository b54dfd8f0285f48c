// Byte-pair encoding with the ids of huggingface/tokenizers, its oddities included. Short words
// of bytes merge in an array, where a scan of all ranks beats a heap. All other words use a
// heap, O(n log n). It may hold entries whose pair is gone; they are checked when they come up
// rather than removed.
//
// Source: Sennrich et al. 2016; Radford et al. 2019 (byte level).

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "tokenizer/models/merge_table.h"
#include "tokenizer/models/model.h"
#include "tokenizer/models/sentencepiece_text.h"
#include "tokenizer/split/byte_alphabet.h"
#include "tokenizer/utf8.h"

namespace muster {
namespace {

using Symbol = ModelBuffers::Symbol;
using Merge = ModelBuffers::Merge;

constexpr std::size_t kShortWord = 48;  // symbols; to look at all ranks beats a heap up to here

/// Heap order: the lowest rank on top, of equal ones the leftmost.
bool comes_later(const Merge& a, const Merge& b) {
  return std::tie(a.rank, a.position) > std::tie(b.rank, b.position);
}

class Bpe final : public Model {
 public:
  Bpe(Vocabulary vocabulary, MergeTable merges, BpeOptions options)
      : vocabulary_(std::move(vocabulary)),
        merges_(std::move(merges)),
        options_(std::move(options)) {
    if (options_.unk_token) {
      unk_id_ = vocabulary_.id_of(*options_.unk_token);
    }
    if (options_.byte_fallback) find_byte_tokens();
    vocabulary_.table().for_each([&](std::string_view token, TokenId id) {
      const auto bytes = options_.reads_bytes ? bytes_of_token(token) : std::nullopt;
      if (bytes) {
        byte_tokens_.insert(*bytes, id);
        if (bytes->size() == 1) {
          byte_ids_[static_cast<unsigned char>(bytes->front())] = id;
        }
      }
    });
  }

  void tokenize(std::string_view word, ModelBuffers& buffers,
                std::vector<TokenId>& ids) const override {
    if (options_.ignore_merges) {
      const TokenTable& whole = options_.reads_bytes ? byte_tokens_ : vocabulary_.table();
      // With ignore_merges a word that is a token as a whole is not merged at all, even if
      // merging would end elsewhere.
      if (const auto id = whole.find(word)) {
        ids.push_back(*id);
        return;
      }
    }
    buffers.symbols.clear();
    if (options_.reads_bytes) {
      add_bytes(word, buffers.symbols);
      if (buffers.symbols.size() <= kShortWord) {
        append_short(buffers.symbols, ids);
        return;
      }
    } else {
      add_characters(word, buffers);
    }
    merge_all(buffers);
    for (const Symbol& symbol : buffers.symbols) {
      if (!symbol.is_merged) {
        ids.push_back(symbol.id);
      }
    }
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }

  // Where nothing is unknown each id comes of a token's own text, or of a byte.
  std::optional<std::size_t> token_bytes_most() const override {
    const auto& of_bytes = options_.reads_bytes ? byte_ids_ : fallback_ids_;
    if (!std::all_of(of_bytes.begin(), of_bytes.end(),
                     [](const auto& id) { return id.has_value(); })) {
      return std::nullopt;
    }
    return options_.reads_bytes ? byte_tokens_.size_max() : vocabulary_.table().size_max();
  }

 private:
  static void add_symbol(TokenId id, std::vector<Symbol>& symbols) {
    const auto index = static_cast<std::int64_t>(symbols.size());
    if (!symbols.empty()) {
      symbols.back().next = index;
    }
    symbols.push_back({id, index - 1, -1, false});
  }

  /// Characters that the vocabulary lacks become unknown tokens, or nothing if there is none; with
  /// `fuse_unk` those side by side become one.
  class UnknownRun {
   public:
    UnknownRun(std::optional<TokenId> unk_id, bool fuses) : unk_id_(unk_id), fuses_(fuses) {}

    void flush(std::vector<Symbol>& symbols) {
      if (is_open_) {
        add_symbol(*unk_id_, symbols);
      }
      is_open_ = false;
    }
    void add(std::vector<Symbol>& symbols) {
      if (is_open_ && !fuses_) {
        flush(symbols);
      }
      is_open_ = unk_id_.has_value();
    }

   private:
    const std::optional<TokenId> unk_id_;
    const bool fuses_;
    bool is_open_ = false;
  };

  void add_bytes(std::string_view word, std::vector<Symbol>& symbols) const {
    UnknownRun unknown(unk_id_, options_.fuse_unk);
    for (const char c : word) {
      if (const auto id = byte_ids_[static_cast<unsigned char>(c)]) {
        unknown.flush(symbols);
        add_symbol(*id, symbols);
      } else {
        unknown.add(symbols);
      }
    }
    unknown.flush(symbols);
  }

  void add_characters(std::string_view word, ModelBuffers& buffers) const {
    UnknownRun unknown(unk_id_, options_.fuse_unk);
    for_each_utf8_char(word, [&](char32_t, std::size_t begin, std::size_t end) {
      std::string& text = buffers.text;
      text.clear();
      if (begin > 0) {
        text.append(options_.continuing_subword_prefix);
      }
      text.append(word.substr(begin, end - begin));
      if (end == word.size()) {
        text.append(options_.end_of_word_suffix);
      }
      if (const auto id = vocabulary_.id_of(text)) {
        unknown.flush(buffers.symbols);
        add_symbol(*id, buffers.symbols);
      } else if (!add_fallback(text, buffers.symbols)) {
        unknown.add(buffers.symbols);
      }
    });
    unknown.flush(buffers.symbols);
  }

  // Looked up once; a missing byte only matters for a character that contains it.
  void find_byte_tokens() {
    for (unsigned byte = 0; byte < fallback_ids_.size(); ++byte) {
      fallback_ids_[byte] = vocabulary_.id_of(byte_token(static_cast<std::uint8_t>(byte)));
    }
  }

  /// The bytes of a character as tokens, where the vocabulary has all of them. Like the library
  /// this leaves an unknown token that is still open behind the bytes.
  bool add_fallback(std::string_view text, std::vector<Symbol>& symbols) const {
    const auto id_of = [&](char c) { return fallback_ids_[static_cast<unsigned char>(c)]; };
    if (!std::all_of(text.begin(), text.end(), [&](char c) { return id_of(c).has_value(); })) {
      return false;
    }
    for (const char c : text) add_symbol(*id_of(c), symbols);
    return true;
  }

  static constexpr std::uint32_t kNoRank = 0xFFFFFFFF;

  /// A short word merged in place: each round joins the pair of the lowest rank, the leftmost
  /// first. For bytes this is the order of the heap, too: equal spans of a word hold equal text.
  void append_short(const std::vector<Symbol>& symbols, std::vector<TokenId>& ids) const {
    std::array<TokenId, kShortWord> parts{};
    std::array<MergeRule, kShortWord> rules{};  // of a part and the next
    std::size_t count = symbols.size();
    const auto rule_at = [&](std::size_t i) {
      const MergeRule* rule = i + 1 < count ? merges_.find(parts[i], parts[i + 1]) : nullptr;
      return rule != nullptr ? *rule : MergeRule{kNoRank, 0};
    };
    for (std::size_t i = 0; i < count; ++i) {
      parts[i] = symbols[i].id;
    }
    for (std::size_t i = 0; i < count; ++i) {
      rules[i] = rule_at(i);
    }
    while (count > 1) {
      std::size_t best = 0;
      for (std::size_t i = 1; i + 1 < count; ++i) {
        best = rules[i].rank < rules[best].rank ? i : best;
      }
      if (rules[best].rank == kNoRank) {
        break;
      }
      parts[best] = rules[best].merged_id;
      --count;
      for (std::size_t i = best + 1; i < count; ++i) {
        parts[i] = parts[i + 1];
        rules[i] = rules[i + 1];
      }
      rules[best] = rule_at(best);
      if (best > 0) {
        rules[best - 1] = rule_at(best - 1);
      }
    }
    ids.insert(ids.end(), parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(count));
  }

  // Symbols stay at their places and are linked, so that a merge costs one relinking and two new
  // entries in the heap rather than a shift of the word.
  void merge_all(ModelBuffers& buffers) const {
    std::vector<Symbol>& symbols = buffers.symbols;
    std::vector<Merge>& queue = buffers.queue;
    queue.clear();
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      if (const MergeRule* rule = merges_.find(symbols[i].id, symbols[i + 1].id)) {
        queue.push_back({rule->rank, i, rule->merged_id});
      }
    }
    std::make_heap(queue.begin(), queue.end(), comes_later);
    while (!queue.empty()) {
      std::pop_heap(queue.begin(), queue.end(), comes_later);
      const Merge top = queue.back();
      queue.pop_back();
      if (!is_current(top, symbols)) {
        continue;
      }
      Symbol& left = symbols[top.position];
      Symbol& right = symbols[static_cast<std::size_t>(left.next)];
      right.is_merged = true;
      left.id = top.merged_id;
      left.next = right.next;
      if (left.next >= 0) {
        symbols[static_cast<std::size_t>(left.next)].previous =
            static_cast<std::int64_t>(top.position);
        enqueue(top.position, buffers);
      }
      if (left.previous >= 0) {
        enqueue(static_cast<std::size_t>(left.previous), buffers);
      }
    }
  }

  /// An entry outlives its pair when a neighbour merges first. Like the library this compares what
  /// the pair becomes, not the pair itself.
  bool is_current(const Merge& merge, const std::vector<Symbol>& symbols) const {
    const Symbol& left = symbols[merge.position];
    if (left.is_merged || left.next < 0) {
      return false;
    }
    const MergeRule* rule = merges_.find(left.id, symbols[static_cast<std::size_t>(left.next)].id);
    return rule != nullptr && rule->merged_id == merge.merged_id;
  }

  void enqueue(std::size_t position, ModelBuffers& buffers) const {
    const Symbol& left = buffers.symbols[position];
    const Symbol& right = buffers.symbols[static_cast<std::size_t>(left.next)];
    if (const MergeRule* rule = merges_.find(left.id, right.id)) {
      buffers.queue.push_back({rule->rank, position, rule->merged_id});
      std::push_heap(buffers.queue.begin(), buffers.queue.end(), comes_later);
    }
  }

  const Vocabulary vocabulary_;
  const MergeTable merges_;
  const BpeOptions options_;
  std::optional<TokenId> unk_id_;
  TokenTable byte_tokens_;  // tokens as the bytes they stand for, when words come as bytes
  std::array<std::optional<TokenId>, 256> byte_ids_{};
  std::array<std::optional<TokenId>, 256>
      fallback_ids_{};  // of <0x00> to <0xFF>, with byte_fallback
};

Error unknown_token(std::string_view what, std::string_view token) {
  return Error{ErrorKind::Corrupt, "tokenizer.json: " + std::string(what) +
                                       " is not in the vocabulary: " + std::string(token)};
}

// With all 256 bytes in the vocabulary nothing can be unknown, and a missing unknown token is no
// fault.
bool has_all_bytes(const TokenTable& tokens) {
  return std::all_of(kByteCharacters.begin(), kByteCharacters.end(), [&](char32_t c) {
    std::string token;
    append_utf8(c, token);
    return tokens.find(token).has_value();
  });
}

}  // namespace

// Two conditions make words of mark runs exact: no token has a mark behind another character, so
// no merge crosses the beginning of a run; and nothing is unknown, so no run of unknowns is
// fused across it.
bool allows_mark_runs(const TokenTable& tokens) {
  if (!tokens.find(kSpaceMark)) return false;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (!tokens.find(byte_token(static_cast<std::uint8_t>(byte)))) return false;
  }
  bool is_clear = true;
  tokens.for_each([&](std::string_view token, TokenId) {
    while (token.starts_with(kSpaceMark)) token.remove_prefix(kSpaceMark.size());
    is_clear &= token.find(kSpaceMark) == std::string_view::npos;
  });
  return is_clear;
}

Result<std::unique_ptr<const Model>> make_bpe(TokenTable tokens,
                                              const std::vector<MergeText>& merges,
                                              const BpeOptions& options) {
  const bool needs_unk = options.unk_token && !(options.reads_bytes && has_all_bytes(tokens));
  if (needs_unk && !tokens.find(*options.unk_token)) {
    return Error{
        ErrorKind::Unsupported,
        "tokenizer.json: the unknown token is not in the vocabulary: " + *options.unk_token};
  }
  MergeTable table(merges.size());
  std::string whole;
  const std::size_t prefix_size = options.continuing_subword_prefix.size();
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const auto left_id = tokens.find(left);
    const auto right_id = tokens.find(right);
    if (!left_id || !right_id || right.size() < prefix_size) {
      return unknown_token("part of a merge", left_id ? right : left);
    }
    whole.assign(left).append(right.substr(prefix_size));
    const auto merged_id = tokens.find(whole);
    if (!merged_id) {
      return unknown_token("a merged token", whole);
    }
    table.insert(*left_id, *right_id, {static_cast<std::uint32_t>(rank), *merged_id});
  }
  return std::unique_ptr<const Model>(
      std::make_unique<Bpe>(Vocabulary(std::move(tokens)), std::move(table), options));
}

}  // namespace muster

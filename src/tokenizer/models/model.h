#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tokenizer/models/vocabulary.h"

namespace muster {

/// Buffers of one thread for cutting a word; which model uses which is its own affair.
struct ModelBuffers {
  struct Symbol {
    TokenId id = 0;
    std::int64_t previous = -1;  // index, -1 for none
    std::int64_t next = -1;
    bool is_merged = false;  // swallowed by its left neighbour
  };
  struct Merge {
    std::uint32_t rank = 0;
    std::size_t position = 0;
    TokenId merged_id = 0;
  };
  /// The best way through a word up to one byte of it: its score and its last piece.
  struct PathEnd {
    double score = 0;
    TokenId id = 0;
    std::uint32_t size = 0;  // of the last piece; 0: no way leads here
  };
  std::vector<Symbol> symbols;
  std::vector<Merge> queue;
  std::vector<PathEnd> paths;
  std::string text;
};

/// Cuts one word into tokens of its vocabulary.
///
/// Threads: immutable; the caller owns the buffers.
class Model {
 public:
  virtual ~Model() = default;

  /// Appends the ids of `word`, which is not empty.
  virtual void tokenize(std::string_view word, ModelBuffers& buffers,
                        std::vector<TokenId>& ids) const = 0;

  virtual const Vocabulary& vocabulary() const = 0;

  /// Bytes of a word that one id stands for, at most; nullopt: there is no bound, since one unknown
  /// token may stand for many characters, or characters may be lost.
  virtual std::optional<std::size_t> token_bytes_most() const { return std::nullopt; }
};

/// Longest token first, from left to right; a word that cannot be cut is one unknown token.
/// Source: Devlin et al. 2018, WordpieceTokenizer; models/wordpiece of huggingface/tokenizers.
struct WordPieceOptions {
  std::string unk_token = "[UNK]";
  std::string continuing_subword_prefix = "##";
  std::uint64_t max_input_chars_per_word = 100;
};
/// Errors: Corrupt when the unknown token is not in the vocabulary.
Result<std::unique_ptr<const Model>> make_wordpiece(TokenTable tokens,
                                                    const WordPieceOptions& options);

/// Joins neighbours by the rank of their pair. Source: Sennrich et al. 2016; models/bpe of
/// huggingface/tokenizers.
struct BpeOptions {
  std::optional<std::string> unk_token;
  std::string continuing_subword_prefix;
  std::string end_of_word_suffix;
  bool fuse_unk = false;
  bool ignore_merges = false;
  bool byte_fallback = false;  // unknown characters become the tokens <0x00> to <0xFF>

  /// The words come as bytes although the vocabulary is written in the byte alphabet.
  bool reads_bytes = false;
};
using MergeText = std::pair<std::string_view, std::string_view>;
/// Errors: Corrupt for a merge whose parts or whole are not in the vocabulary; Unsupported for an
/// unknown token that is not, as it would only fail on some texts.
Result<std::unique_ptr<const Model>> make_bpe(TokenTable tokens,
                                              const std::vector<MergeText>& merges,
                                              const BpeOptions& options);

/// Joins neighbours whose text is a token, the one of the highest score first, of equal ones the
/// leftmost. A character that is in no token in the end becomes its bytes' tokens `<0x0A>`, or else
/// one unknown token. `tokens` has the ids 0, 1, 2, ... and `scores` one for each.
///
/// Errors: Unsupported when a byte has no token and there is no `unknown_id`.
/// Source: Kudo and Richardson 2018 (SentencePiece); llm_tokenizer_spm in llama-vocab.cpp of
/// llama.cpp.
Result<std::unique_ptr<const Model>> make_score_bpe(TokenTable tokens, std::vector<float> scores,
                                                    std::optional<TokenId> unknown_id);

/// Whether no token has a space mark behind another character, so that BPE merges nothing across
/// the beginning of a run of marks and each run may begin a word of its own; and whether every byte
/// has a token, so that no unknown tokens fuse across it either.
bool allows_mark_runs(const TokenTable& tokens);

/// The way through a word whose pieces have the highest sum of scores (log probabilities), a
/// character without a piece scoring ten less than the least likely piece.
/// Source: Kudo 2018, "Subword Regularization"; encode_optimized in models/unigram/model.rs of
/// huggingface/tokenizers, with its order of additions and comparisons, on which equal sums depend.
struct UnigramOptions {
  std::uint64_t unk_id = 0;
  bool byte_fallback = false;  // unknown characters become the tokens <0x00> to <0xFF>
};
/// `tokens` has the ids 0, 1, 2, ... and `scores` a finite score for each.
///
/// Errors: Corrupt when the unknown token is not in the vocabulary; Unsupported as PieceTrie::make.
Result<std::unique_ptr<const Model>> make_unigram(TokenTable tokens, std::vector<double> scores,
                                                  const UnigramOptions& options);

}  // namespace muster

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "spec/truncation_side.h"

namespace muster {

using TokenId = std::uint32_t;

struct TokenizerParts;
class DecoderStream;

/// A tokenizer as Hugging Face's `tokenizer.json` describes it, with exactly its ids.
///
/// Threads: immutable and thread-safe; each thread brings its own `TokenizerScratch`.
/// Source: huggingface/tokenizers 0.23 (the behaviour), Devlin et al. 2018 (WordPiece),
/// Sennrich et al. 2016 and Radford et al. 2019 (byte-level BPE).
class Tokenizer {
 public:
  /// Buffers and the word cache of one thread. Bounded; cheap to keep, costly to make.
  class Scratch;

  /// Errors: NotFound, Corrupt (broken JSON or a missing part), Unsupported (a component that is
  /// not implemented, by name: `tokenizer.json: unsupported normalizer "Quotes"`).
  static Result<std::unique_ptr<const Tokenizer>> load(const std::filesystem::path& tokenizer_json);
  static Result<std::unique_ptr<const Tokenizer>> parse(std::string_view tokenizer_json);

  /// A tokenizer of parts that were put together elsewhere, as `read_tokenizer_json` does.
  static std::unique_ptr<const Tokenizer> of_parts(TokenizerParts parts);

  ~Tokenizer();

  std::unique_ptr<Scratch, void (*)(Scratch*)> make_scratch() const;
  /// For a single text of so many bytes: with a word cache of that text's size, at most the usual.
  std::unique_ptr<Scratch, void (*)(Scratch*)> make_scratch(std::size_t text_bytes) const;

  struct Encoded {
    std::uint32_t token_count = 0;  // appended to `ids`
    bool is_truncated = false;
  };

  /// Appends the ids of `text` (UTF-8; checked by the caller) with special tokens, at most
  /// `length_max` in all. Cut at the right, it stops reading the text where the limit is sure to be
  /// reached, so a 1 MB text cut to 256 tokens costs little more than a 4 KB one; cut at the left,
  /// the whole text is read. The truncation and padding that tokenizer.json itself states are not
  /// applied; `length_max` rules.
  ///
  /// length_max: at least `special_token_count()`.
  Encoded encode(std::string_view text, std::uint32_t length_max, Scratch& scratch,
                 std::vector<TokenId>& ids, TruncationSide side = TruncationSide::Right) const;

  /// The same without the special tokens around the text; those within it are found all the same.
  Encoded encode_content(std::string_view text, std::uint32_t length_max, Scratch& scratch,
                         std::vector<TokenId>& ids) const;

  /// All ids of `text`, with the special tokens around it or without. nullopt where they are more
  /// than `length_max`: then no more is read than tells so, and a text that is far too long costs
  /// a copy of it at most.
  ///
  /// length_max: at least `special_token_count()`.
  std::optional<std::vector<TokenId>> encode_whole(std::string_view text, std::uint32_t length_max,
                                                   bool adds_special_tokens,
                                                   Scratch& scratch) const;

  struct EncodedPair {
    std::uint32_t token_count = 0;    // appended to `ids`
    std::uint32_t first_segment = 0;  // of these, those of segment 0: they come first
    bool is_truncated = false;
  };

  /// Appends the ids of two texts as the template for pairs has them, at most `length_max` in all.
  /// What is too much is taken from the longer text, and from both once they are equally long, as
  /// the library's `longest_first` does. Of a text that is far too long only the beginning is read.
  ///
  /// length_max: at least `pair_special_token_count()`; only where `encodes_pairs()`.
  EncodedPair encode_pair(std::string_view first, std::string_view second, std::uint32_t length_max,
                          Scratch& scratch, std::vector<TokenId>& ids) const;

  /// The first text of many pairs, a reranker's query, say. Its ids are kept from pair to pair, so
  /// that it is read once, and again only where a pair needs more of it than all before: each time
  /// at least twice as far.
  ///
  /// Threads: not thread-safe; used with one tokenizer.
  class FirstOfPairs {
   public:
    explicit FirstOfPairs(std::string text) : text_(std::move(text)) {}
    const std::string& text() const { return text_; }

   private:
    friend class Tokenizer;
    std::string text_;
    std::vector<TokenId> ids_;
    bool is_read_ = false;
    bool is_whole_ = false;  // ids_ are all of the text's
  };

  /// The same pair as above.
  EncodedPair encode_pair(FirstOfPairs& first, std::string_view second, std::uint32_t length_max,
                          Scratch& scratch, std::vector<TokenId>& ids) const;

  /// False for a tokenizer.json whose template puts pairs into another order than the first text
  /// and then the second.
  bool encodes_pairs() const;

  /// Text of ids, as `tokenizers` decodes with skip_special_tokens given.
  std::string decode(std::span<const TokenId> ids, bool skip_special_tokens) const;

  /// The text of an id as the vocabulary writes it ("Ġthe", "<0x0A>", "<|im_end|>"), not decoded;
  /// nullopt for an id without a token. Valid as long as the tokenizer.
  std::optional<std::string_view> token_text(TokenId id) const;

  /// The bytes that an id adds to the text of a reply; those of a character may be spread over
  /// ids. Joined, they are that text, where it is UTF-8 and no decoder's suffix is left out at its
  /// end. nullopt for an id that adds nothing: a special token, or one without a token.
  ///
  /// continues_text: as TextStreamOptions has it, and for all ids but the first of a reply.
  std::optional<std::string> token_bytes(TokenId id, bool continues_text) const;

  /// The id of a token by that text, added tokens first.
  std::optional<TokenId> find_token(std::string_view text) const;

  /// Whether decoding with skip_special_tokens leaves the id out.
  bool is_special(TokenId id) const;

  /// Tokens that the post-processor adds around a single text.
  std::uint32_t special_token_count() const;

  /// Those before the text, and those behind it. Valid as long as the tokenizer.
  std::span<const TokenId> special_tokens_before() const;
  std::span<const TokenId> special_tokens_after() const;

  /// Tokens that the post-processor adds to a pair; 0 where it encodes none.
  std::uint32_t pair_special_token_count() const;

  /// Ids are below this (added tokens included).
  std::uint32_t vocab_size() const;

 private:
  friend class TextStream;
  struct Parts;
  std::unique_ptr<DecoderStream> decoder_stream(bool continues_text) const;  // null: no decoder
  void read_first(FirstOfPairs& first, std::size_t end, Scratch& scratch) const;
  explicit Tokenizer(std::unique_ptr<const Parts> parts);
  std::unique_ptr<const Parts> parts_;
};

}  // namespace muster

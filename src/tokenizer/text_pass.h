#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/models/model.h"
#include "tokenizer/models/word_cache.h"
#include "tokenizer/reading/tokenizer_json.h"
#include "tokenizer/text_cut.h"
#include "tokenizer/tokenizer.h"

namespace muster {

class Tokenizer::Scratch {
 public:
  Scratch() = default;
  explicit Scratch(std::size_t text_bytes) : words(text_bytes) {}

  WordCache words;
  Pieces pieces;
  ModelBuffers model;
  std::string text;  // normalised
  std::string spare;
};

/// A text is worked through in parts of about this many bytes, so that a limit on tokens stops
/// early; some hundred tokens come out of one part.
inline constexpr std::size_t kPartSize = 2048;

/// What is wanted of a text that has more ids than its limit.
enum class Beyond : std::uint8_t {
  Begins,  // its first ids
  IsTold,  // no more than that it has more
};

/// One pass over one text, which turns it into ids: finds the added tokens, normalises what is
/// between them, splits that into words and cuts the words.
class TextPass {
 public:
  /// `ids` grows to at most one word more than `ids_end`; then the rest of the text is not looked
  /// at. Where it is enough to tell, a word or a text that has too many ids by its length alone is
  /// not cut into them: the buffers for that take some fifty bytes for each byte of a word.
  TextPass(const TokenizerParts& parts, Tokenizer::Scratch& scratch, std::vector<TokenId>& ids,
           std::size_t ids_end, Beyond beyond = Beyond::Begins)
      : parts_(parts),
        scratch_(scratch),
        ids_(ids),
        ids_end_(ids_end),
        token_bytes_most_(beyond == Beyond::IsTold ? parts.model->token_bytes_most()
                                                   : std::nullopt) {}

  /// `part_size` changes the speed only, never the ids.
  void encode(std::string_view text, std::size_t part_size = kPartSize);

  /// The text has more ids than the limit.
  bool is_full() const { return is_surely_longer_ || ids_.size() > ids_end_; }

 private:
  bool has_too_many(std::size_t bytes) const;
  CutRules cut_rules() const;
  void encode_part(std::string_view part, SegmentEdges edges, bool begins_text);
  void encode_words(std::string_view text, bool begins_text);
  void encode_word(std::string_view word);

  const TokenizerParts& parts_;
  Tokenizer::Scratch& scratch_;
  std::vector<TokenId>& ids_;
  const std::size_t ids_end_;
  const std::optional<std::size_t> token_bytes_most_;  // nullopt: not known, or not of use
  bool is_surely_longer_ = false;
};

}  // namespace muster

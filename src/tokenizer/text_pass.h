#pragma once

#include <cstddef>
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
  WordCache words;
  Pieces pieces;
  ModelBuffers model;
  std::string text;  // normalised
  std::string spare;
};

/// A text is worked through in parts of about this many bytes, so that a limit on tokens stops
/// early; some hundred tokens come out of one part.
inline constexpr std::size_t kPartSize = 2048;

/// One pass over one text, which turns it into ids: finds the added tokens, normalises what is
/// between them, splits that into words and cuts the words.
class TextPass {
 public:
  /// `ids` grows to at most one word more than `ids_end`; then the rest of the text is not looked
  /// at.
  TextPass(const TokenizerParts& parts, Tokenizer::Scratch& scratch, std::vector<TokenId>& ids,
           std::size_t ids_end)
      : parts_(parts), scratch_(scratch), ids_(ids), ids_end_(ids_end) {}

  /// `part_size` changes the speed only, never the ids.
  void encode(std::string_view text, std::size_t part_size = kPartSize);

 private:
  bool is_full() const { return ids_.size() > ids_end_; }
  CutRules cut_rules() const;
  void encode_part(std::string_view part, SegmentEdges edges, bool begins_text);
  void encode_words(std::string_view text, bool begins_text);
  void encode_word(std::string_view word);

  const TokenizerParts& parts_;
  Tokenizer::Scratch& scratch_;
  std::vector<TokenId>& ids_;
  const std::size_t ids_end_;
};

}  // namespace muster

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/text_encoder.h"
#include "spec/truncation_side.h"

namespace muster {

/// One text of a call on its way to its ids.
struct TextToEncode {
  std::string text;
  std::string_view prompt;  // before it; of no meaning in a pair
  TruncationSide side = TruncationSide::Right;
  Tokenizer::FirstOfPairs* query = nullptr;  // the text is the second of a pair with it

  /// What may have to be read for it.
  std::size_t byte_count() const {
    return text.size() + prompt.size() + (query != nullptr ? query->text().size() : 0);
  }
};

struct EncodedText {
  std::vector<TokenId> ids;
  std::uint32_t first_segment = 0;  // of a pair: how many ids are of segment 0
  bool is_truncated = false;
  std::size_t byte_count = 0;  // of the text, its prompt and the query; 0: it came as ids
};

EncodedText encode_text(TextEncoder& encoder, const TextToEncode& text);

/// Ids that a caller gave, cut at the limit: special tokens stay, as they do when a text is cut.
EncodedText cut_ids(const TextEncoder& encoder, std::vector<TokenId> ids, TruncationSide side);

/// What tells that ids are not of this tokenizer; nullopt where nothing does. Ids must be of the
/// model's vocabulary and, where the tokenizer puts special tokens around a text, have them there.
std::optional<std::string> foreign_ids(const Tokenizer& tokenizer, std::uint32_t vocab_size,
                                       const std::vector<TokenId>& ids);

}  // namespace muster

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace muster {

/// Turns a text into the token ids that the model sees: prompt, lower case where the model asks for
/// it, special tokens, cut at the limit.
///
/// Threads: not thread-safe (it owns the tokenizer's scratch); owned by one loop.
class TextEncoder {
 public:
  /// prompt: put before every text of `encode(text, ids)`.
  TextEncoder(std::unique_ptr<const Tokenizer> tokenizer, std::string prompt, bool lowercase,
              std::uint32_t length_max);

  /// text: valid UTF-8. Replaces `ids`.
  Tokenizer::Encoded encode(std::string_view text, std::vector<TokenId>& ids) {
    return encode(prompt_, text, TruncationSide::Right, ids);
  }

  /// The same after another prompt, cut at either side.
  Tokenizer::Encoded encode(std::string_view prompt, std::string_view text, TruncationSide side,
                            std::vector<TokenId>& ids);

  /// A pair, as a cross-encoder sees it: no prompt. Replaces `ids`; only where the tokenizer
  /// encodes pairs.
  Tokenizer::EncodedPair encode_pair(std::string_view first, std::string_view second,
                                     std::vector<TokenId>& ids);

  std::uint32_t length_max() const { return length_max_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  std::string_view prepared(std::string_view prompt, std::string_view text);

  std::unique_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<Tokenizer::Scratch, void (*)(Tokenizer::Scratch*)> scratch_;
  std::string prompt_;
  bool lowercase_;
  std::uint32_t length_max_;
  std::string buffer_;
};

}  // namespace muster

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
/// Threads: not thread-safe (it owns the tokenizer's scratch); owned by one thread.
class TextEncoder {
 public:
  /// prompt: put before every text of `encode(text, ids)`.
  TextEncoder(std::shared_ptr<const Tokenizer> tokenizer, std::string prompt, bool lowercase,
              std::uint32_t length_max);

  /// The same for another thread.
  std::unique_ptr<TextEncoder> another() const {
    return std::make_unique<TextEncoder>(tokenizer_, prompt_, lowercase_, length_max_);
  }

  /// text: valid UTF-8. Replaces `ids`.
  Tokenizer::Encoded encode(std::string_view text, std::vector<TokenId>& ids) {
    return encode(prompt_, text, TruncationSide::Right, ids);
  }

  /// The same after another prompt, cut at either side.
  Tokenizer::Encoded encode(std::string_view prompt, std::string_view text, TruncationSide side,
                            std::vector<TokenId>& ids);

  /// The first text of pairs, for `encode_pair`.
  Tokenizer::FirstOfPairs first_of_pairs(std::string_view text) {
    return Tokenizer::FirstOfPairs(std::string(prepared("", text)));
  }

  /// A pair, as a cross-encoder sees it: no prompt. Replaces `ids`; only where the tokenizer
  /// encodes pairs.
  Tokenizer::EncodedPair encode_pair(Tokenizer::FirstOfPairs& first, std::string_view second,
                                     std::vector<TokenId>& ids) {
    ids.clear();
    return tokenizer_->encode_pair(first, prepared("", second), length_max_, *scratch_, ids);
  }

  std::uint32_t length_max() const { return length_max_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  std::string_view prepared(std::string_view prompt, std::string_view text);

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<Tokenizer::Scratch, void (*)(Tokenizer::Scratch*)> scratch_;
  std::string prompt_;
  bool lowercase_;
  std::uint32_t length_max_;
  std::string buffer_;
};

}  // namespace muster

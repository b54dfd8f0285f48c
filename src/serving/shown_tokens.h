#pragma once

#include <cstdint>

#include "serving/generation_call.h"
#include "spec/generation.h"
#include "tokenizer/tokenizer.h"

namespace muster {

/// The tokens of one reply as its client is shown them, with how likely each was.
///
/// Threads: not thread-safe; owned by one reply. The tokenizer outlives it.
class ShownTokens {
 public:
  /// continues_text: the tokens follow a text instead of a chat template's.
  ShownTokens(const Tokenizer& tokenizer, bool continues_text)
      : tokenizer_(&tokenizer), continues_text_(continues_text) {}

  /// The next token of the reply, and what would have been likely in its place.
  ///
  /// A special token is shown by its name, and an id without a token as "token_id:ID".
  /// Source of that form: vLLM, `return_tokens_as_token_ids`.
  ReplyToken next(std::uint32_t token, const TokenLogprobs& logprobs);

 private:
  ShownToken shown(std::uint32_t token, float logprob) const;

  const Tokenizer* tokenizer_;
  bool continues_text_;  // true from the first token on that is text
};

}  // namespace muster

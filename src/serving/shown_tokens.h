#pragma once

#include <cstdint>
#include <optional>

#include "serving/generation_call.h"
#include "spec/generation.h"
#include "tokenizer/tokenizer.h"

namespace muster {

/// The tokens of one reply, or of a prompt, as its client is shown them, with how likely each was.
///
/// Threads: not thread-safe; owned by one reply. The tokenizer outlives it.
class ShownTokens {
 public:
  /// continues_text: the tokens follow a text instead of a chat template's, or of nothing.
  ShownTokens(const Tokenizer& tokenizer, bool continues_text)
      : tokenizer_(&tokenizer), continues_text_(continues_text) {}

  /// The next token of the reply, and what would have been likely in its place.
  ///
  /// A special token is shown by its name, and an id without a token as "token_id:ID".
  /// Source of that form: vLLM, `return_tokens_as_token_ids`.
  ReplyToken next(std::uint32_t token, const TokenLogprobs& logprobs);

  /// The same of a token that nothing is before, and so nothing could foretell.
  ReplyToken next_unscored(std::uint32_t token);

 private:
  ShownToken shown(std::uint32_t token, std::optional<float> logprob) const;

  const Tokenizer* tokenizer_;
  bool continues_text_;  // true from the first token on that is text
};

}  // namespace muster

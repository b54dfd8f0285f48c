// Names of tokens for people, and their bytes for programs. The first token of a reply may lose its
// space, as its text does, and so do those that might have stood in its place.

#include "serving/shown_tokens.h"

#include <fmt/format.h>

#include <utility>

namespace muster {

ReplyToken ShownTokens::next(std::uint32_t token, const TokenLogprobs& logprobs) {
  ReplyToken reply{.chosen = shown(token, logprobs.chosen)};
  for (const auto& [other, logprob] : logprobs.top) reply.top.push_back(shown(other, logprob));
  continues_text_ |= reply.chosen.is_text;
  return reply;
}

ReplyToken ShownTokens::next_unscored(std::uint32_t token) {
  ReplyToken reply{.chosen = shown(token, std::nullopt)};
  continues_text_ |= reply.chosen.is_text;
  return reply;
}

ShownToken ShownTokens::shown(std::uint32_t token, std::optional<float> logprob) const {
  if (auto bytes = tokenizer_->token_bytes(token, continues_text_)) {
    return {.bytes = *std::move(bytes), .is_text = true, .logprob = logprob};
  }
  const auto name = tokenizer_->token_text(token);
  return {.bytes = name ? std::string(*name) : fmt::format("token_id:{}", token),
          .is_text = false,
          .logprob = logprob};
}

}  // namespace muster

// The canary of a decoder: nothing that a model would say, since that is known of no model before
// it is loaded. What one worker answers first is what all others of its class have to answer.

#include "coordinator/decoder_canary.h"

#include <algorithm>
#include <bit>

namespace muster {
namespace {

constexpr std::uint32_t kReplyTokens = 4;
constexpr std::uint32_t kStride = 7919;  // a prime: the ids differ, whatever the vocabulary
// It shares keys and values with nobody's prompts.
constexpr std::uint64_t kScope = UINT64_MAX;

}  // namespace

Generate canary_request(std::uint32_t vocab_size, std::uint32_t length_max) {
  const auto room = std::max(length_max, 1U);
  const auto reply = std::min(kReplyTokens, room - 1);
  const auto prompt = std::min(kCanaryTokensMost - kReplyTokens, room - reply);
  Generate request;
  for (std::uint32_t i = 1; i <= prompt; ++i) {
    request.ids.push_back(i * kStride % std::max(vocab_size, 1U));
  }
  request.token_limit = reply;
  request.prefix_scope = kScope;
  request.sampling.logprob_count = kLogprobsMost;
  return request;
}

Status CanaryAnswer::add(const Tokens& message) {
  for (const auto& token : message.tokens) {
    const bool is_expected = token.sequence == kCanarySequence && !token.is_prompt;
    if (!is_expected || !token.logprobs || is_whole()) {
      return Error{ErrorKind::Corrupt, "the worker told other tokens than its canary asks for"};
    }
    row_.push_back(std::bit_cast<float>(token.token));
    row_.push_back(token.logprobs->chosen);
    for (const auto& [other, logprob] : token.logprobs->top) {
      row_.push_back(std::bit_cast<float>(other));
      row_.push_back(logprob);
    }
    --left_count_;
  }
  return Done{};
}

}  // namespace muster

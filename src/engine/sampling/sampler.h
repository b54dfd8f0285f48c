#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "spec/generation.h"

namespace muster::engine {

/// The tokens of a sequence so far, as the penalties see them. Empty where no penalty is asked for.
///
/// Threads: owned by its sequence.
class TokenHistory {
 public:
  explicit TokenHistory(const SamplingOptions& options);

  void add_prompt(std::uint32_t token);
  void add_reply(std::uint32_t token);

  struct Seen {
    std::uint32_t reply_count = 0;  // 0: only in the prompt
  };
  const std::unordered_map<std::uint32_t, Seen>& seen() const { return seen_; }

 private:
  bool is_used_;
  std::unordered_map<std::uint32_t, Seen> seen_;
};

struct SampledToken {
  std::uint32_t token = 0;
  std::optional<TokenLogprobs> logprobs = {};  // where they are asked for
};

/// Chooses the token for position `position` of a sequence (prompt and reply counted). A function
/// of its arguments: neither the other sequences of a step nor what was drawn before count.
///
/// Of equally likely tokens the smallest id goes first. `logits` [vocab] are changed.
/// Errors: Corrupt where a logit is not finite.
/// Cost: log-probabilities take a pass over the vocabulary, as drawing with a temperature does;
/// with top_p or top_k as many tokens as those leave are sorted as well. Source: transformers 5.17,
/// generation/logits_process.py, for the order and the penalties but the two of OpenAI's API
/// reference (presence, frequency).
Result<SampledToken> sample(std::span<float> logits, const SamplingOptions& options,
                            const TokenHistory& history, std::uint64_t position);

/// How likely `token` is by the logits before it, and which `top_count` would have been the
/// likeliest there.
///
/// Errors: Corrupt where a logit is not finite.
Result<TokenLogprobs> score(std::span<const float> logits, std::uint32_t token,
                            std::size_t top_count);

/// Errors: InvalidArgument, naming the field and what it may be: a temperature, top_p or min_p out
/// of range, a penalty that is none, more logprobs than kLogprobsMost, a bias for an id outside of
/// the vocabulary.
Status check_sampling(const SamplingOptions& options, std::size_t vocab_size);

}  // namespace muster::engine

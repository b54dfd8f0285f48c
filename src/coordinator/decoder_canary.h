#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "wire/generation_messages.h"

namespace muster {

/// The frame id of a canary, which no stream has.
inline constexpr std::uint64_t kCanarySequence = UINT64_MAX;

/// Of its prompt and of what is chosen behind that, at most.
inline constexpr std::uint32_t kCanaryTokensMost = 24;

/// A short prompt that a worker continues before it is given a stream: workers of one class that
/// have loaded one decoder answer it bit for bit alike. Its ids are spread over the vocabulary and
/// mean nothing; they fill a block of the cache and begin another one. The likeliest tokens are
/// chosen, each with as many log-probabilities as can be told: a wrong bit in a weight, in the
/// cache or in a product shows there, though the same tokens are chosen.
///
/// length_max: of the decoder; a short context has a shorter canary. Threads: pure.
Generate canary_request(std::uint32_t vocab_size, std::uint32_t length_max);

/// What a worker answers to it, as numbers whose bits are compared (canary_book.h).
///
/// Threads: not thread-safe; owned by the fleet's loop.
class CanaryAnswer {
 public:
  /// token_count: that were asked for.
  explicit CanaryAnswer(std::uint32_t token_count) : left_count_(token_count) {}

  /// Errors: Corrupt for tokens of another sequence, of the prompt, without log-probabilities, or
  /// more than were asked for.
  Status add(const Tokens& message);

  /// All tokens have come.
  bool is_whole() const { return left_count_ == 0; }
  const std::vector<float>& row() const { return row_; }

 private:
  std::uint32_t left_count_;
  std::vector<float> row_;  // of each token: it, its log-probability, and the same of others
};

}  // namespace muster

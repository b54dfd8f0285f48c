#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "serving/generation_call.h"

namespace muster {

/// The tokens of one reply with their log-probabilities, as OpenAI's clients read them: of a chat
/// `content` with an object for each token, else the four lists of /v1/completions.
///
/// A token that is only a part of a character is shown as its bytes, "\xe2\x80", and in the lists
/// as "bytes:\xe2\x80". `bytes` are null for a token that is no text: a special one. `text_offset`
/// counts characters from the beginning of the reply, as long as its bytes are UTF-8. Of a prompt's
/// first token, which nothing foretells, log-probability and `top_logprobs` are null.
///
/// Threads: not thread-safe; owned by one answer.
/// Source: OpenAI, API reference, "The chat completion object" and "The completion object"; OpenAI
/// Cookbook, "Using logprobs", for the first form; HELM, basic_metrics.py (convert_tokens_to_text),
/// which reads the second.
class LogprobsJson {
 public:
  explicit LogprobsJson(bool is_chat) : is_chat_(is_chat) {}

  void add(const ReplyToken& token);

  bool is_empty() const { return chosen_.empty(); }
  /// Bytes that `take` would give, but for the frame.
  std::size_t size() const {
    return chosen_.size() + logprobs_.size() + top_.size() + offsets_.size();
  }

  /// The object of what was added since the last time, maybe of nothing.
  std::string take();

 private:
  void add_to_lists(const ReplyToken& token);
  void append_top(const ReplyToken& token);

  bool is_chat_;
  std::uint64_t characters_ = 0;  // of the reply that have begun, its echo included
  std::string chosen_;            // `content`, or `tokens`; items with commas between them
  std::string logprobs_;          // the other lists
  std::string top_;
  std::string offsets_;
};

}  // namespace muster

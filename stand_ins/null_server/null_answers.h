#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

/// What a request asks of the null server.
struct NullRequest {
  enum class Kind : std::uint8_t { Plain, Embeddings, Rerank, Models, Chat, Completions };
  Kind kind = Kind::Plain;
  std::size_t item_count = 1;        // inputs, documents
  std::uint64_t input_tokens = 1;    // words
  std::uint64_t output_tokens = 16;  // max_tokens
  bool is_stream = false;

  bool is_generation() const { return kind == Kind::Chat || kind == Kind::Completions; }
};

/// By target and body; a body that is not what the target wants counts as empty. Threads: pure.
NullRequest read_null_request(std::string_view path, std::string_view body);

/// A whole body. Threads: pure.
std::string null_body(const NullRequest& request);

/// An event of a stream: the word of number `index`, from 0. Threads: pure.
std::string null_token_event(const NullRequest& request, std::uint64_t index);

/// The events behind the last token: the reason of the end, usage, and [DONE]. Threads: pure.
std::string null_last_events(const NullRequest& request);

}  // namespace muster

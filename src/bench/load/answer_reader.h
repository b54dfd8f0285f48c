#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// What an answer of an API says, beside its status.
struct AnswerFacts {
  std::optional<std::string> problem = {};  // why it is not what the API promises
  std::optional<std::int64_t> input_tokens = {};
  std::optional<std::int64_t> output_tokens = {};
  std::vector<double> token_times = {};  // when each piece of text came, as `on_body` was told
  std::string text = {};                 // all pieces, if they are kept
};

/// Reads the bodies of one connection's answers, one after the other.
///
/// Threads: not thread-safe.
class AnswerReader {
 public:
  virtual ~AnswerReader() = default;

  /// The next bytes of a body. at: seconds, of any clock that ascends.
  virtual void on_body(std::string_view bytes, double at) = 0;
  /// The body is whole; the next one begins.
  virtual AnswerFacts finish() = 0;
  /// The body will not be whole; the next one begins.
  virtual void drop() = 0;
};

using AnswerReaderMaker = std::function<std::unique_ptr<AnswerReader>()>;

/// Takes any body.
std::unique_ptr<AnswerReader> any_answer_reader();

/// A JSON object with a list of `count` items under `list` ("data", "results"), and token counts
/// under "usage" where there are any.
std::unique_ptr<AnswerReader> list_answer_reader(std::string list, std::size_t count);

/// What is read of a stream at most, so that one without an end cannot fill the memory: a million
/// tokens take some 250 MB on the wire.
inline constexpr std::size_t kReplyBytesMost = 1ULL << 30;

/// Server-sent events of chat or text completions, to the final "[DONE]". Pieces of text are
/// choices[0].delta.content (also reasoning_content) or choices[0].text. More than `bytes_most` are
/// not what the API promises.
///
/// Source: OpenAI API reference, "Streaming"; HTML Standard, section 9.2 (event streams).
std::unique_ptr<AnswerReader> stream_answer_reader(bool keeps_text,
                                                   std::size_t bytes_most = kReplyBytesMost);

}  // namespace muster

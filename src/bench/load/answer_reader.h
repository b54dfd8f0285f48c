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

/// More tokens than one answer can have read or written: what a server says beyond it, or below 0,
/// is no count. Ten million answers of so many still have a sum that 64 bits hold.
inline constexpr std::int64_t kAnswerTokensMost = 1'000'000'000;

/// What an answer of an API says, beside its status.
struct AnswerFacts {
  std::optional<std::string> problem = {};        // why it is not what the API promises
  std::optional<std::int64_t> input_tokens = {};  // 0 to kAnswerTokensMost
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

  /// The next bytes of a body. at: seconds, of any clock that ascends. False: the body is longer
  /// than what was asked for can be, and nothing more of it is kept or wanted.
  virtual bool on_body(std::string_view bytes, double at) = 0;
  /// The body is whole; the next one begins.
  virtual AnswerFacts finish() = 0;
  /// The body will not be whole; the next one begins.
  virtual void drop() = 0;
};

using AnswerReaderMaker = std::function<std::unique_ptr<AnswerReader>()>;

/// Takes any body.
std::unique_ptr<AnswerReader> any_answer_reader();

/// What a list holds: vectors under "data", each in `embedding` as a list that is not empty and has
/// no null, or as a text (base64); scores under "results", each in `relevance_score`.
enum class AnswerList : std::uint8_t { Vectors, Scores };

/// The bytes of an answer with so many items at most, whatever was asked for.
inline constexpr std::size_t kListBytesMost = 1ULL << 30;

/// The bytes that an answer with a list of `count` items can need: 256 KiB each, which is a vector
/// of 10,000 numbers of 25 characters; for each byte of the request four with scores, as its texts
/// may come back, escaped, and 8 KiB with vectors, as a text may have one a token: 1,300 numbers of
/// 25 characters where a token has four bytes; and 1 MiB for the rest. At most `kListBytesMost`.
/// Threads: pure.
std::size_t list_bytes_most(AnswerList list, std::size_t count, std::size_t request_bytes);

/// A JSON object with a list of `count` items, each with its `index` from 0 to `count` - 1 in any
/// order, or none with one; and token counts under "usage" where there are any.
///
/// bytes_most: a longer answer is not what the API promises.
/// Source: OpenAI API reference, "Embeddings"; Cohere API reference, "Rerank".
std::unique_ptr<AnswerReader> list_answer_reader(AnswerList list, std::size_t count,
                                                 std::size_t bytes_most = kListBytesMost);

/// What is read of a stream at most, so that one without an end cannot fill the memory: a million
/// tokens take some 250 MB on the wire.
inline constexpr std::size_t kReplyBytesMost = 1ULL << 30;

/// The bytes that a stream of `tokens` can need: 16 KiB each, as an event with 20 log-probabilities
/// takes, and 16 MiB for the rest. At most `kReplyBytesMost`. Threads: pure.
std::size_t reply_bytes_most(std::uint64_t tokens);

/// Server-sent events of chat or text completions, to the final "[DONE]". Pieces of text are
/// choices[0].delta.content (also reasoning_content) or choices[0].text. More than `bytes_most` are
/// not what the API promises.
///
/// Source: OpenAI API reference, "Streaming"; HTML Standard, section 9.2 (event streams).
std::unique_ptr<AnswerReader> stream_answer_reader(bool keeps_text,
                                                   std::size_t bytes_most = kReplyBytesMost);

}  // namespace muster

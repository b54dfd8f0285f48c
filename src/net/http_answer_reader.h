#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "net/http_message.h"

namespace muster {

/// What an HttpAnswerReader finds in a stream, as it comes.
class HttpAnswerParts {
 public:
  /// The head is whole. Interim answers (100 to 199) are passed over.
  virtual void on_head(int status, const HttpHeaders& headers) = 0;
  /// The next bytes of the body, without the framing of chunks.
  virtual void on_body(std::string_view bytes) = 0;

 protected:
  ~HttpAnswerParts() = default;
};

/// Reads one answer from pieces of a stream, and keeps none of its body.
///
/// Threads: not thread-safe. Source: RFC 9112.
class HttpAnswerReader {
 public:
  explicit HttpAnswerReader(HttpAnswerParts& parts);
  ~HttpAnswerReader();
  HttpAnswerReader(const HttpAnswerReader&) = delete;
  HttpAnswerReader& operator=(const HttpAnswerReader&) = delete;

  /// Takes what it can of `bytes` and says how many that were; what is left comes again, with more
  /// behind it. Nothing is taken once `is_done` or `problem`.
  std::size_t put(std::span<const char> bytes);

  /// The peer has ended the stream, which is the end of an answer that announces no length.
  void put_end();

  bool is_done() const;
  /// When `is_done`: the connection can be used again.
  bool keeps_alive() const;
  /// Why the stream is no answer.
  const std::optional<std::string>& problem() const { return problem_; }

  /// Makes it ready for the next answer.
  void reset();

 private:
  struct Parser;

  HttpAnswerParts& parts_;
  std::unique_ptr<Parser> parser_;
  std::optional<std::string> problem_;
};

}  // namespace muster

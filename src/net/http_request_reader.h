#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "net/http_message.h"

namespace muster {

struct HttpLimits {
  std::uint32_t header_bytes = 16 << 10;  // request line and headers
  std::uint64_t body_bytes = 16 << 20;
};

/// Puts one request together from pieces of a stream. A request with a body that is announced by
/// length or comes in chunks is taken; what breaks RFC 9112 is refused with the status to send, and
/// so is what two readers of one stream may frame differently. Trailers are read and dropped.
///
/// It holds the head, of no more than 100 headers, and the body. What `put` leaves is the caller's
/// to keep, and never more than `header_bytes` and one piece: extensions of chunks and trailers
/// without an end are refused.
///
/// Threads: not thread-safe.
class HttpRequestReader {
 public:
  explicit HttpRequestReader(const HttpLimits& limits);
  HttpRequestReader(HttpRequestReader&&) noexcept;
  HttpRequestReader& operator=(HttpRequestReader&&) noexcept;
  ~HttpRequestReader();

  /// Takes what it can of `bytes` and says how many that were; what is left belongs to the next
  /// request. Nothing is taken once `is_done` or `refusal`.
  std::size_t put(std::span<const char> bytes);

  /// As `put`, but takes nothing of the body.
  std::size_t put_head(std::span<const char> bytes);

  bool is_head_done() const;
  bool is_done() const;

  /// When `is_head_done`: the request as far as it has come.
  HttpRequest& request();
  const HttpRequest& request() const;

  /// When `is_head_done`: the length of the body; nullopt when it comes in chunks.
  std::optional<std::uint64_t> announced_bytes() const;

  /// When `is_head_done`, before any of the body: a longer one is refused with 413.
  void set_body_limit(std::uint64_t bytes);

  /// True once, when the head is whole, its body is not, and the client waits for "100 Continue".
  bool take_expects_continue();

  /// Why the request cannot be read: 400, 413, 431, 501 or 505 with a sentence; the connection is
  /// of no more use.
  const std::optional<HttpResponse>& refusal() const { return refusal_; }

  /// The request, when `is_done`; the reader is used up.
  HttpRequest take();

 private:
  struct Parser;
  std::size_t put_all(std::span<const char> bytes, bool is_head_only);
  void refuse_bad_chunk(std::string_view line);

  std::unique_ptr<Parser> parser_;
  HttpLimits limits_;
  std::optional<HttpResponse> refusal_;
};

}  // namespace muster

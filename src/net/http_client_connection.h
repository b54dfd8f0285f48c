#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "net/http_message.h"
#include "net/socket_address.h"

namespace muster {

class TlsContext;

/// What becomes of a request, told on the loop's thread. The connection may be destroyed at any
/// time but from within `on_connected`, `on_sent`, `on_head` and `on_body`.
class HttpAnswerSink {
 public:
  virtual ~HttpAnswerSink() = default;

  /// The connection is there, with its TLS handshake; before a request that waited for it is sent.
  virtual void on_connected() = 0;
  /// The system has taken the request's last byte.
  virtual void on_sent() = 0;
  virtual void on_head(int status, const HttpHeaders& headers) = 0;
  /// The next bytes of the body.
  virtual void on_body(std::string_view bytes) = 0;
  /// The answer is whole. keeps_alive: the connection takes another request.
  virtual void on_end(bool keeps_alive) = 0;
  /// The connection is of no more use; a request under way gets no answer.
  virtual void on_failed(Error error) = 0;
};

/// Where many connections lead to.
struct HttpClientTarget {
  HttpUrl url;
  SocketAddress address;            // what the host's name stands for
  std::shared_ptr<TlsContext> tls;  // for https

  /// Looks the name up, which may take seconds. Of several addresses it is `first_that_listens`.
  ///
  /// Errors: those of parse_http_url and of the files for TLS; NotFound (no such host), with the
  /// address; Unsupported (a Unix socket).
  static Result<HttpClientTarget> find(std::string_view url, const TlsClientOptions& tls = {});

  /// The first address to which one can connect within `limit`, which is for all together; the
  /// first of all where there is none. "localhost" is ::1 and 127.0.0.1, and most servers listen on
  /// one of them.
  ///
  /// addresses: one at least. Cost: nothing for one alone.
  static SocketAddress first_that_listens(std::span<const SocketAddress> addresses, Duration limit);
};

/// One connection of a client on an EventLoop, with one request at a time. It sets no time limits:
/// its owner closes it by destroying it.
///
/// Threads: the loop's, or that which made the loop before it runs.
class HttpClientConnection {
 public:
  /// Begins to connect; `on_connected` or `on_failed` follows, never from within this call.
  ///
  /// target: lives as long as the connection, and so does `sink`.
  /// Errors: ResourceExhausted when there are no descriptors left.
  static Result<std::unique_ptr<HttpClientConnection>> open(EventLoop& loop,
                                                            const HttpClientTarget& target,
                                                            HttpAnswerSink& sink);
  virtual ~HttpClientConnection() = default;

  /// Sends a request, now or once it is connected. bytes: the whole of it as it goes over the wire;
  /// they stay the caller's and live until `on_sent` or the connection's end. Call it when there
  /// is no request under way.
  virtual void send(std::string_view bytes) = 0;
};

/// A request's head with an empty line at its end, for `send`. Content-Length is added unless it is
/// a GET without a body. Threads: pure.
std::string http_request_head(const HttpUrl& url, std::string_view method, std::string_view target,
                              const HttpHeaders& headers, std::size_t body_size);

}  // namespace muster

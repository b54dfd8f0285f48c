#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "net/http_message.h"
#include "net/http_request_reader.h"

namespace muster {

/// Where to listen: "127.0.0.1:9400", "[::1]:9400", "localhost:9400"; port 0 lets the system
/// choose.
struct ListenAddress {
  std::string host;  // without brackets; an address, or localhost
  std::uint16_t port = 0;
};

/// Errors: InvalidArgument, with an example of the right form. Threads: pure.
Result<ListenAddress> parse_listen_address(std::string_view text);

struct HttpServerOptions {
  ListenAddress listen = {};
  HttpLimits limits = {};
  std::uint32_t connections_most = 1024;                  // one more is told 503 and closed
  Duration request_limit = std::chrono::seconds(10);      // from a request's first byte to its last
  Duration idle_limit = std::chrono::seconds(75);         // between requests of a connection
  Duration write_stall_limit = std::chrono::seconds(30);  // a reader that takes nothing
};

/// Sends the answer to a request; call once, from any thread, while the server lives. What comes
/// when the client has gone is dropped.
using HttpRespond = std::function<void(HttpResponse)>;

/// Called on the server's thread for each request, so it must not block; it may answer later.
using HttpHandler = std::function<void(HttpRequest, HttpRespond)>;

/// An HTTP/1.1 server on a thread of its own: keep-alive, pipelining (one request at a time), HEAD,
/// bounded in every direction. A client that sends or reads too slowly is cut off, and no number of
/// idle connections keeps another from being served.
///
/// The destructor closes all connections and joins the thread.
/// Threads: thread-safe. Source: RFC 9110, RFC 9112.
class HttpServer {
 public:
  /// Errors: Unavailable (the port is in use), InvalidArgument (no such address, no permission).
  static Result<std::unique_ptr<HttpServer>> start(const HttpServerOptions& options,
                                                   HttpHandler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// The port that is listened on.
  std::uint16_t port() const;

 private:
  class Loop;
  explicit HttpServer(std::unique_ptr<Loop> loop);

  std::unique_ptr<Loop> loop_;
};

}  // namespace muster

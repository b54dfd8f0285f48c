#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "net/event_loop.h"
#include "net/http_message.h"
#include "net/http_request_reader.h"
#include "net/memory_budget.h"
#include "net/tls_options.h"
#include "net/unix_socket.h"

namespace muster {

/// Where to listen: "127.0.0.1:9400", "[::1]:9400", "localhost:9400"; port 0 lets the system
/// choose.
struct ListenAddress {
  std::string host;  // without brackets; an address, or localhost
  std::uint16_t port = 0;
};

/// Errors: InvalidArgument, with an example of the right form. Threads: pure.
Result<ListenAddress> parse_listen_address(std::string_view text);

/// What a request makes the server hold while it is answered, for each byte of its body: the body,
/// the texts that are read from it, and their tokens, four bytes each.
inline constexpr std::uint64_t kHeldForABody = 4;

/// Bytes of an answer in parts that are kept for a client before its writer is told to wait.
inline constexpr std::size_t kStreamBytesMost = 64 << 10;

/// What is to become of a request whose head has come.
struct HttpVerdict {
  std::optional<HttpResponse> refusal = {};      // sent at once; the body is not read
  std::optional<std::uint64_t> body_bytes = {};  // a longer body is refused with 413
};

/// Whom a refusal of the server's own goes to, as far as that is known.
struct HttpRefused {
  std::string_view peer;
  std::string_view client_name;  // as HttpRequest has it
  std::string_view method;       // empty: the head has not come, or cannot be read
  std::string_view path;
  /// Set when the handler has the request: what `on_head` left in it, if that still lives. The
  /// refusal goes in the place of the handler's answer, and is told of before the call that gives
  /// the answer returns.
  std::shared_ptr<void> judged = {};
};

struct HttpServerOptions {
  ListenAddress listen = {};
  bool listens_on_port = true;                        // on `listen`; else on the Unix socket alone
  std::optional<UnixSocketOptions> unix_socket = {};  // never with TLS
  HttpLimits limits = {};
  /// One more takes the place of the one that has been idle longest; where none is, it is told 503
  /// and closed.
  std::uint32_t connections_most = 16384;
  /// Bytes of requests, of what is computed for them and of answers that are not sent yet, over all
  /// connections. A request that would go over it is told 503; one that reads its answer or sends
  /// its body slowly makes room for others.
  std::uint64_t memory_most = 256 << 20;
  /// From a request's first byte to its last, and 1 s more for each 32 KiB of its body; never more
  /// than this from now on, so that nothing is gained by what was sent fast before.
  Duration request_limit = std::chrono::seconds(10);
  Duration idle_limit = std::chrono::seconds(75);         // between requests of a connection
  Duration write_stall_limit = std::chrono::seconds(30);  // a reader that takes nothing
  std::optional<TlsOptions> tls = {};                     // nullopt: plain HTTP
  /// Judges a request by its head (`body` is empty), before its body is read; on the loop's thread.
  /// What it leaves in `judged` comes with the request. Empty: all are taken.
  std::function<HttpVerdict(HttpRequest&)> on_head = {};
  /// Gives a refusal of the server's own (400, 408, 413, 431, 501, 503, 505; plain text) the
  /// service's form; on the loop's thread. Empty: it stays as it is.
  std::function<void(HttpResponse&, const HttpRefused&)> dress_refusal = {};
  /// Told of a request's first bytes, as many as have come, before anything of them is read; on the
  /// loop's thread.
  std::function<void(std::string_view)> on_first_bytes = {};
};

/// The way back to the client of one request. A server makes it; tests make their own.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  virtual void respond(HttpResponse response) = 0;
  virtual void on_client_gone(std::function<void()> call) = 0;
  virtual bool hold(std::uint64_t bytes) = 0;
  virtual bool begin_stream(HttpResponse head, std::function<void()> on_room) = 0;
  virtual bool write(std::string_view bytes) = 0;
  virtual void end_stream() = 0;
};

/// Answers a request. Copies stand for the same request.
class HttpRespond {
 public:
  explicit HttpRespond(std::shared_ptr<HttpExchange> exchange) : exchange_(std::move(exchange)) {}

  /// Call once (what comes after the first is dropped), from any thread, while the server's loop
  /// lives. What comes when the client has gone, or the server, is dropped.
  void operator()(HttpResponse response) const { exchange_->respond(std::move(response)); }

  /// `call` is called once, on the loop's thread, when the client goes before it has its answer:
  /// it closes or resets the connection, or ends its side of it. Never after the answer was given
  /// and never from within this call. Without it, a client that has only ended its side still gets
  /// the answer. An answer in parts is given when it has ended; until then the server's own end,
  /// and what it does to those who read too slowly, counts as the client's going.
  ///
  /// Threads: the loop's.
  void on_client_gone(std::function<void()> call) const {
    exchange_->on_client_gone(std::move(call));
  }

  /// Until the answer, `bytes` more are held for this request than a multiple of its body. False:
  /// there is no room for them, and the request should be told to come again.
  ///
  /// Threads: the loop's.
  bool hold(std::uint64_t bytes) const { return exchange_->hold(bytes); }

  /// Begins an answer whose body comes in parts, instead of the call above: in chunks, and to a
  /// client of HTTP/1.0 up to the end of the connection. The body of `head` is its first part.
  /// `on_room` is called when a `write` has told that there is no room and there is some again;
  /// never from within a call of these three.
  ///
  /// False: no part is wanted (HEAD, the client has gone, it was answered before); what is written
  /// is dropped, and the stream need not be ended.
  ///
  /// Threads: of these three, the loop's.
  bool begin_stream(HttpResponse head, std::function<void()> on_room) const {
    return exchange_->begin_stream(std::move(head), std::move(on_room));
  }

  /// The next part, of any size; it is sent at once, or kept until the client takes it. False: more
  /// than kStreamBytesMost is kept now, and the writer should wait for `on_room`. What is written
  /// nevertheless is kept as long as the server may hold it (`memory_most`), else the client is cut
  /// off; `on_client_gone` tells.
  bool write(std::string_view bytes) const { return exchange_->write(bytes); }

  /// That was the last part. One that nobody ends is never given, and ends with the connection.
  void end_stream() const { exchange_->end_stream(); }

 private:
  std::shared_ptr<HttpExchange> exchange_;
};

/// Called on the loop's thread for each request, which is its own to take, so it must not block; it
/// may answer later.
using HttpHandler = std::function<void(HttpRequest&&, HttpRespond)>;

/// What has become of connections and requests since the start.
struct HttpServerCounters {
  std::uint64_t accepted = 0;             // connections
  std::uint64_t refused_connections = 0;  // one too many, or no descriptor left
  std::uint64_t requests = 0;             // given to the handler
  std::uint64_t refused_requests = 0;     // that could not be read: 4xx, 501, 505
  std::uint64_t slow_requests = 0;        // 408: not whole within `request_limit`
  std::uint64_t slow_readers = 0;         // cut off: took nothing for `write_stall_limit`
  std::uint64_t idle_closed = 0;          // after `idle_limit`
  std::uint64_t idle_evicted = 0;         // for another one at `connections_most`
  std::uint64_t memory_refusals = 0;      // 503: `memory_most`
  std::uint64_t memory_evictions = 0;     // cut off or told 503: slow, and `memory_most`
  std::uint64_t clients_gone = 0;         // while the answer was awaited
  std::uint64_t failed_handshakes = 0;    // TLS: not spoken, not agreed on, not verified, too slow
};

class HttpServerCore;

/// An HTTP/1.1 server on an event loop: keep-alive, pipelining (one request at a time), HEAD,
/// answers in parts, bounded in every direction. A client that sends or reads too slowly is cut
/// off, and no number of idle connections keeps another from being served.
///
/// Threads: all but `start`, `port` and the destructor belong to the loop's thread.
/// Source: RFC 9110, RFC 9112.
class HttpServer {
 public:
  /// On a loop and a thread of its own, which the destructor ends.
  ///
  /// Errors: Unavailable (the port is in use), InvalidArgument (no such address, no permission);
  /// those of UnixListener, and of the files for TLS, as TlsContext tells them.
  static Result<std::unique_ptr<HttpServer>> start(const HttpServerOptions& options,
                                                   HttpHandler handler);

  /// On a loop that outlives it; called, and destroyed, on the loop's thread or while it does not
  /// run. The destructor closes all connections, and no callback comes after it.
  static Result<std::unique_ptr<HttpServer>> start(const HttpServerOptions& options,
                                                   EventLoop& loop, HttpHandler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// The port that is listened on; 0 for none.
  std::uint16_t port() const;

  /// New connections are refused by the system from now on.
  void stop_listening();

  /// Begins the end: connections without a request are closed now, a request that is not whole is
  /// told 503, and every other connection ends with its next answer, which says
  /// `Connection: close`; new ones too, as long as it listens. `on_sent` is called once, when no
  /// request waits for its answer and every answer has been taken by its client's system.
  void drain(std::function<void()> on_sent);

  /// True since `drain`.
  bool is_draining() const;

  /// Whoever still waits for an answer is told 503; an answer in parts is cut off.
  void give_up();

  /// Certificates for connections that come from now on; on an error nothing is changed.
  ///
  /// Errors: those of the files; InvalidArgument for a server that began without TLS.
  Status reload_tls(const TlsOptions& options);

  std::size_t connection_count() const;
  const MemoryBudget& memory() const;
  const HttpServerCounters& counters() const;

 private:
  HttpServer();

  std::unique_ptr<EventLoop> own_loop_;
  std::unique_ptr<HttpServerCore> core_;
  std::jthread own_thread_;
};

}  // namespace muster

#include "net/http_server.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <ctime>
#include <set>
#include <thread>
#include <utility>

namespace muster {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Failure = boost::system::error_code;

constexpr std::size_t kReadSize = 16 << 10;
constexpr auto kSweepPeriod = std::chrono::milliseconds(250);
constexpr auto kLingerLimit = std::chrono::seconds(2);

std::string http_date() {
  return fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(std::time(nullptr)));
}

// One connection. It lives as long as its coroutine, or an answer that is still to come.
struct Connection {
  explicit Connection(tcp::socket accepted)
      : socket(std::move(accepted)), answered(socket.get_executor()) {
    answered.expires_at(asio::steady_timer::time_point::max());
  }

  void close() {
    Failure ignored;
    socket.close(ignored);
    answered.cancel();
  }

  // At once, with what was not sent yet thrown away.
  void cut() {
    Failure ignored;
    socket.set_option(tcp::socket::linger(true, 0), ignored);
    close();
  }

  tcp::socket socket;
  asio::steady_timer answered;  // cancelled when `response` is there
  std::optional<HttpResponse> response;
  TimePoint deadline = TimePoint::max();  // the sweep cuts the connection then
  std::string unread;                     // bytes of the next request
};

}  // namespace

class HttpServer::Loop {
 public:
  Loop(const HttpServerOptions& options, HttpHandler handler)
      : options_(options), handler_(std::move(handler)), acceptor_(io_), sweep_(io_) {}

  Status listen() {
    const auto& host = options_.listen.host;
    const auto port = options_.listen.port;
    const auto fail = [&](std::string_view what, const Failure& failure) {
      const bool is_in_use = failure == asio::error::address_in_use;
      return Error{is_in_use ? ErrorKind::Unavailable : ErrorKind::InvalidArgument,
                   fmt::format("{}:{}: cannot {}: {}", host, port, what, failure.message())};
    };
    Failure failure;
    const auto address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, failure);
    if (failure) return fail("listen on what is no address", failure);
    const tcp::endpoint endpoint(address, port);
    acceptor_.open(endpoint.protocol(), failure);
    if (!failure) acceptor_.set_option(tcp::acceptor::reuse_address(true), failure);
    if (!failure) acceptor_.bind(endpoint, failure);
    if (!failure) acceptor_.listen(asio::socket_base::max_listen_connections, failure);
    if (failure) return fail("listen", failure);
    return Done{};
  }

  void start() {
    asio::co_spawn(io_, accept(), asio::detached);
    asio::co_spawn(io_, sweep(), asio::detached);
    thread_ = std::thread([this] { io_.run(); });
  }

  void stop() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

  std::uint16_t port() const {
    Failure ignored;
    return acceptor_.local_endpoint(ignored).port();
  }

 private:
  asio::awaitable<void> accept() {
    for (;;) {
      Failure failure;
      auto socket =
          co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, failure));
      if (failure) {
        // No descriptors, or a client that left: the next one may do better.
        co_await pause();
        continue;
      }
      socket.set_option(tcp::no_delay(true), failure);
      auto connection = std::make_shared<Connection>(std::move(socket));
      const bool is_one_too_many = connections_.size() >= options_.connections_most;
      connections_.insert(connection);
      if (connections_.size() == 1) sweep_.cancel();  // it slept: there was nothing to look at
      asio::co_spawn(io_, serve(connection, is_one_too_many), asio::detached);
    }
  }

  asio::awaitable<void> pause() {
    asio::steady_timer timer(io_);
    timer.expires_after(kSweepPeriod);
    Failure ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }

  // One timer for all connections; a deadline is kept to within a quarter of a second.
  asio::awaitable<void> sweep() {
    for (;;) {
      if (connections_.empty()) {
        sweep_.expires_at(asio::steady_timer::time_point::max());
      } else {
        sweep_.expires_after(kSweepPeriod);
      }
      Failure ignored;
      co_await sweep_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      const auto now = std::chrono::steady_clock::now();
      for (const auto& connection : connections_) {
        if (connection->deadline <= now) connection->cut();
      }
    }
  }

  void set_deadline(Connection& connection, Duration limit) {
    connection.deadline = std::chrono::steady_clock::now() + limit;
  }

  asio::awaitable<void> serve(std::shared_ptr<Connection> connection, bool is_one_too_many) {
    if (is_one_too_many) {
      const HttpResponse full{.status = 503, .body = "too many connections\n"};
      co_await send(connection, full, false, true);
      co_await linger(connection);
    } else {
      while (co_await serve_request(connection)) {
      }
    }
    connection->close();
    connections_.erase(connection);
  }

  // False when the connection is over.
  asio::awaitable<bool> serve_request(std::shared_ptr<Connection> connection) {
    HttpRequestReader reader(options_.limits);
    const bool is_read = co_await read_request(connection, reader);
    if (!is_read) co_return false;
    if (reader.refusal()) {
      const HttpResponse refusal = *reader.refusal();
      co_await send(connection, refusal, false, true);
      co_await linger(connection);
      co_return false;
    }
    auto request = reader.take();
    const bool keeps_alive = request.wants_keep_alive;
    const bool has_body = request.method != "HEAD";
    connection->deadline = TimePoint::max();  // how long an answer may take is the handler's matter
    connection->response.reset();
    connection->answered.expires_at(asio::steady_timer::time_point::max());
    handler_(std::move(request), respond_to(connection));
    if (!connection->response) {
      Failure ignored;
      co_await connection->answered.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    if (!connection->response) co_return false;
    const HttpResponse response = std::move(*connection->response);
    const bool is_sent = co_await send(connection, response, keeps_alive, has_body);
    co_return is_sent&& keeps_alive;
  }

  // Closing while the client still sends would reset the connection, and it might never read why.
  // Source: RFC 9112, section 9.6.
  asio::awaitable<void> linger(std::shared_ptr<Connection> connection) {
    Failure failure;
    connection->socket.shutdown(tcp::socket::shutdown_send, failure);
    set_deadline(*connection, kLingerLimit);
    std::array<char, kReadSize> unwanted;
    while (!failure) {
      co_await connection->socket.async_read_some(
          asio::buffer(unwanted), asio::redirect_error(asio::use_awaitable, failure));
    }
  }

  HttpRespond respond_to(const std::shared_ptr<Connection>& connection) {
    return [connection](HttpResponse response) {
      asio::post(connection->socket.get_executor(),
                 [connection, answer = std::move(response)]() mutable {
                   connection->response = std::move(answer);
                   connection->answered.cancel();
                 });
    };
  }

  // True when a whole request, or a refusal, is in `reader`.
  asio::awaitable<bool> read_request(std::shared_ptr<Connection> connection,
                                     HttpRequestReader& reader) {
    set_deadline(*connection,
                 connection->unread.empty() ? options_.idle_limit : options_.request_limit);
    bool has_begun = !connection->unread.empty();
    std::array<char, kReadSize> chunk;
    for (;;) {
      const auto taken = reader.put(connection->unread);
      connection->unread.erase(0, taken);
      if (reader.is_done() || reader.refusal()) co_return true;
      if (reader.take_expects_continue()) {
        static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
        Failure failure;
        co_await asio::async_write(connection->socket, asio::buffer(kContinue),
                                   asio::redirect_error(asio::use_awaitable, failure));
        if (failure) co_return false;
      }
      Failure failure;
      const auto size = co_await connection->socket.async_read_some(
          asio::buffer(chunk), asio::redirect_error(asio::use_awaitable, failure));
      if (failure) co_return false;
      if (!std::exchange(has_begun, true)) set_deadline(*connection, options_.request_limit);
      connection->unread.append(chunk.data(), size);
    }
  }

  asio::awaitable<bool> send(std::shared_ptr<Connection> connection, const HttpResponse& response,
                             bool keeps_alive, bool has_body) {
    const auto head = http_response_head(response, keeps_alive, http_date());
    std::array<asio::const_buffer, 2> parts{
        asio::buffer(head), has_body ? asio::buffer(response.body) : asio::const_buffer()};
    // In steps, so that the deadline is about a reader that takes nothing, not about a long answer.
    std::size_t left = asio::buffer_size(parts);
    while (left > 0) {
      set_deadline(*connection, options_.write_stall_limit);
      Failure failure;
      const auto size = co_await connection->socket.async_write_some(
          parts, asio::redirect_error(asio::use_awaitable, failure));
      if (failure) co_return false;
      left -= size;
      const auto of_head = std::min(size, parts[0].size());
      parts[0] += of_head;
      parts[1] += size - of_head;
    }
    connection->deadline = TimePoint::max();
    co_return true;
  }

  const HttpServerOptions options_;
  const HttpHandler handler_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer sweep_;
  std::set<std::shared_ptr<Connection>> connections_;
  std::thread thread_;
};

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options,
                                                      HttpHandler handler) {
  auto loop = std::make_unique<Loop>(options, std::move(handler));
  MUSTER_TRY(loop->listen());
  loop->start();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(loop)));
}

HttpServer::HttpServer(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}

HttpServer::~HttpServer() { loop_->stop(); }

std::uint16_t HttpServer::port() const { return loop_->port(); }

}  // namespace muster

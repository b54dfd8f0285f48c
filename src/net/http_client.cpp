// A blocking client for commands and tests: one request at a time on a connection that is kept.
// Each wait has a deadline and can be cancelled by a descriptor. A kept connection may have been
// closed by the server meanwhile, which is looked for before a request and not found out by a
// failed one, since a request cannot safely be sent twice.

#include "net/http_client.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "net/tls.h"
#include "net/transport.h"
#include "net/unix_socket.h"

namespace muster {
namespace {

namespace http = boost::beast::http;
using Failure = boost::beast::error_code;
using Parser = http::response_parser<http::string_body>;

constexpr std::size_t kReadSize = 64 << 10;
constexpr int kFirstFinalStatus = 200;

struct AddressesFree {
  void operator()(addrinfo* first) const { ::freeaddrinfo(first); }
};
using Addresses = std::unique_ptr<addrinfo, AddressesFree>;

TimePoint now() { return std::chrono::steady_clock::now(); }

enum class WaitEnd : std::uint8_t { Ready, Late, Cancelled };

// cancel_fd: -1 for none, which poll passes over.
WaitEnd wait_for(int fd, short events, TimePoint until, int cancel_fd) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now()).count();
    if (left <= 0) return WaitEnd::Late;
    std::array<pollfd, 2> waiting{pollfd{fd, events, 0}, pollfd{cancel_fd, POLLIN, 0}};
    constexpr long kLongest = 60'000;
    if (::poll(waiting.data(), waiting.size(), static_cast<int>(std::min<long>(left, kLongest))) <=
        0) {
      continue;
    }
    return waiting[1].revents != 0 ? WaitEnd::Cancelled : WaitEnd::Ready;
  }
}

class BlockingClient final : public HttpClient {
 public:
  BlockingClient(HttpUrl url, const HttpClientOptions& options, std::shared_ptr<TlsContext> tls)
      : url_(std::move(url)), options_(options), tls_(std::move(tls)), buffer_(kReadSize) {}

  Result<HttpAnswer> call(std::string_view method, std::string_view target,
                          const HttpHeaders& headers, std::string_view body) override {
    auto answer = exchange(method, target, headers, body);
    if (!answer) close();
    return answer;
  }

 private:
  Result<HttpAnswer> exchange(std::string_view method, std::string_view target,
                              const HttpHeaders& headers, std::string_view body);
  bool is_connected();
  Status await(int fd, short events, TimePoint until, std::string_view when_late) const;
  Status connect();
  Result<UniqueFd> connect_to(int family, const sockaddr* address, socklen_t size, TimePoint until);
  Status connect_to_unix(TimePoint until);
  Status shake_hands(TimePoint until);
  Status send(std::string_view head, std::string_view body, TimePoint until);
  Result<HttpAnswer> receive(bool is_head, TimePoint until);
  Result<std::size_t> put(Parser& parser, std::string_view bytes);
  std::string request_head(std::string_view method, std::string_view target,
                           const HttpHeaders& headers, std::size_t body_size) const;

  void close() {
    transport_.reset();
    socket_.reset();
    unread_.clear();
  }

  Error error(ErrorKind kind, std::string_view what) const {
    return {kind, fmt::format("{}: {}", url_.address(), what)};
  }
  Status await_answer(const IoOutcome& outcome, TimePoint until) const {
    return await(socket_.get(), outcome.needs_write ? POLLOUT : POLLIN, until, "no answer in time");
  }
  Error lost() const {
    const auto problem = transport_->problem();
    return error(ErrorKind::Unavailable, problem.empty() ? "the connection was closed" : problem);
  }

  const HttpUrl url_;
  const HttpClientOptions options_;
  const std::shared_ptr<TlsContext> tls_;
  std::vector<char> buffer_;
  UniqueFd socket_;
  std::unique_ptr<Transport> transport_;
  std::string unread_;
};

// A connection that the server has closed meanwhile is readable.
bool BlockingClient::is_connected() {
  if (!socket_.is_open()) return false;
  pollfd state{socket_.get(), POLLIN, 0};
  if (tls_ == nullptr) return ::poll(&state, 1, 0) == 0;
  // Behind TLS, what is readable may as well be a ticket for the next session.
  const auto outcome = transport_->read(buffer_);
  return outcome.kind == IoOutcome::Kind::Later;
}

Status BlockingClient::await(int fd, short events, TimePoint until,
                             std::string_view when_late) const {
  switch (wait_for(fd, events, until, options_.cancel_fd)) {
    case WaitEnd::Ready:
      return Done{};
    case WaitEnd::Late:
      return error(ErrorKind::DeadlineExceeded, when_late);
    case WaitEnd::Cancelled:
      return Error{ErrorKind::Cancelled, "cancelled"};
  }
  return Done{};
}

Status BlockingClient::connect() {
  close();
  if (!url_.unix_path.empty()) return connect_to_unix(now() + options_.connect_limit);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int failure =
      ::getaddrinfo(url_.host.c_str(), std::to_string(url_.port).c_str(), &wanted, &first);
  if (failure != 0) {
    return error(ErrorKind::NotFound,
                 fmt::format("the host cannot be found: {}", ::gai_strerror(failure)));
  }
  const Addresses addresses(first);
  const auto until = now() + options_.connect_limit;
  auto last = error(ErrorKind::Unavailable, "the host has no address");
  for (const auto* address = first; address != nullptr; address = address->ai_next) {
    auto connected = connect_to(address->ai_family, address->ai_addr, address->ai_addrlen, until);
    if (!connected) {
      last = connected.error();
      continue;
    }
    socket_ = std::move(*connected);
    transport_ = tls_ ? tls_->connect(socket_.get(), url_.host) : plain_transport(socket_.get());
    return shake_hands(until);
  }
  return last;
}

Status BlockingClient::connect_to_unix(TimePoint until) {
  const auto address = MUSTER_TRY(unix_address(url_.unix_path));
  socket_ = MUSTER_TRY(
      connect_to(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address, until));
  transport_ = plain_transport(socket_.get());
  return Done{};
}

Result<UniqueFd> BlockingClient::connect_to(int family, const sockaddr* address, socklen_t size,
                                            TimePoint until) {
  UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto refused = [&](int reason) {
    return error(ErrorKind::Unavailable, fmt::format("cannot connect: {}", std::strerror(reason)));
  };
  if (!socket.is_open()) return refused(errno);
  const int on = 1;
  if (family != AF_UNIX) ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket.get(), address, size) != 0) {
    if (errno != EINPROGRESS) return refused(errno);
    MUSTER_TRY(await(socket.get(), POLLOUT, until, "cannot connect in time"));
    int reason = 0;
    socklen_t reason_size = sizeof reason;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &reason, &reason_size);
    if (reason != 0) return refused(reason);
  }
  return socket;
}

Status BlockingClient::shake_hands(TimePoint until) {
  for (;;) {
    const auto outcome = transport_->handshake();
    if (outcome.kind == IoOutcome::Kind::Done) return Done{};
    if (outcome.kind != IoOutcome::Kind::Later) {
      return error(ErrorKind::Unavailable, "no TLS connection: " + transport_->problem());
    }
    MUSTER_TRY(await_answer(outcome, until));
  }
}

std::string BlockingClient::request_head(std::string_view method, std::string_view target,
                                         const HttpHeaders& headers, std::size_t body_size) const {
  // A Unix socket has no host; servers expect this machine's name.
  const auto host = url_.unix_path.empty() ? url_.address() : std::string("localhost");
  auto head = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\n", method, url_.path, target, host);
  if (body_size > 0 || method != "GET") head += fmt::format("Content-Length: {}\r\n", body_size);
  for (const auto& [name, value] : headers) head += fmt::format("{}: {}\r\n", name, value);
  return head + "\r\n";
}

Result<HttpAnswer> BlockingClient::exchange(std::string_view method, std::string_view target,
                                            const HttpHeaders& headers, std::string_view body) {
  if (!is_connected()) MUSTER_TRY(connect());
  const auto until = now() + options_.answer_limit;
  // A server that refuses a request before it is whole has answered nevertheless.
  const auto sent = send(request_head(method, target, headers, body.size()), body, until);
  if (!sent && sent.error().kind != ErrorKind::Unavailable) return sent.error();
  return receive(method == "HEAD", until);
}

Status BlockingClient::send(std::string_view head, std::string_view body, TimePoint until) {
  while (head.size() + body.size() > 0) {
    const auto outcome = transport_->write(head, body);
    if (outcome.kind == IoOutcome::Kind::Later) {
      MUSTER_TRY(await_answer(outcome, until));
      continue;
    }
    if (outcome.kind != IoOutcome::Kind::Done) return lost();
    const auto of_head = std::min(outcome.size, head.size());
    head.remove_prefix(of_head);
    body.remove_prefix(outcome.size - of_head);
  }
  return Done{};
}

// How many bytes the parser has taken.
Result<std::size_t> BlockingClient::put(Parser& parser, std::string_view bytes) {
  // As in the reader of requests: what Beast 1.81 cannot take in pieces it gets together.
  constexpr std::size_t kLastChunkBytes = 5;
  if (bytes.size() < kLastChunkBytes && parser.is_header_done() && parser.chunked() &&
      parser.get().body().empty()) {
    return std::size_t{0};
  }
  std::size_t taken = 0;
  while (taken < bytes.size() && !parser.is_done()) {
    Failure failure;
    const auto size =
        parser.put(boost::asio::const_buffer(bytes.data() + taken, bytes.size() - taken), failure);
    taken += size;
    if (failure == http::error::need_more) break;
    if (failure == http::error::body_limit) {
      return error(ErrorKind::ResourceExhausted,
                   fmt::format("the answer has more than {} bytes", options_.body_bytes));
    }
    if (failure) {
      return error(ErrorKind::Corrupt,
                   fmt::format("the answer cannot be read: {}", failure.message()));
    }
    if (size == 0) break;
  }
  // Beast looks for the end of a chunk's line for as long as more comes.
  constexpr std::size_t kLineBytes = 64 << 10;
  if (parser.is_header_done() && !parser.is_done() && bytes.size() - taken > kLineBytes) {
    return error(ErrorKind::Corrupt, "the answer cannot be read: a line of its chunks has no end");
  }
  return taken;
}

Result<HttpAnswer> BlockingClient::receive(bool is_head, TimePoint until) {
  std::optional<Parser> parser;
  for (;;) {
    if (!parser) {
      parser.emplace();
      parser->eager(true);
      parser->skip(is_head);
      parser->body_limit(options_.body_bytes);
    }
    unread_.erase(0, MUSTER_TRY(put(*parser, unread_)));
    if (parser->is_done()) {
      if (parser->get().result_int() >= kFirstFinalStatus) break;
      parser.reset();  // "100 Continue" and its like: the answer is still to come
      continue;
    }
    const auto outcome = transport_->read(buffer_);
    if (outcome.kind == IoOutcome::Kind::Done) {
      unread_.append(buffer_.data(), outcome.size);
    } else if (outcome.kind == IoOutcome::Kind::Later) {
      MUSTER_TRY(await_answer(outcome, until));
    } else {
      Failure failure;
      if (parser->got_some()) parser->put_eof(failure);
      if (failure || !parser->is_done()) return lost();
    }
  }
  HttpAnswer answer;
  answer.status = static_cast<int>(parser->get().result_int());
  const bool keeps_alive = parser->keep_alive();
  auto message = parser->release();
  for (const auto& field : message) {
    answer.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  answer.body = std::move(message.body());
  if (!keeps_alive) close();
  return answer;
}

}  // namespace

std::optional<std::string_view> HttpAnswer::header(std::string_view name) const {
  return find_header(headers, name);
}

Result<std::unique_ptr<HttpClient>> HttpClient::open(std::string_view url,
                                                     const HttpClientOptions& options) {
  auto parsed = MUSTER_TRY(parse_http_url(url));
  std::shared_ptr<TlsContext> tls;
  if (parsed.is_tls) tls = MUSTER_TRY(TlsContext::for_client(options.tls));
  return std::unique_ptr<HttpClient>(
      std::make_unique<BlockingClient>(std::move(parsed), options, std::move(tls)));
}

}  // namespace muster

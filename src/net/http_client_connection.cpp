// Connecting, the handshake of TLS, sending and receiving are one state machine that readiness
// drives. Nothing in it waits, so that one thread keeps thousands of connections busy.
#include "net/http_client_connection.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/unique_fd.h"
#include "net/event_loop_parts.h"
#include "net/http_answer_reader.h"
#include "net/tls.h"
#include "net/transport.h"

namespace muster {
namespace {

constexpr std::size_t kReadSize = 64 << 10;
constexpr auto kFindLimit = std::chrono::seconds(5);  // as HttpClientOptions has it

struct AddressesFree {
  void operator()(addrinfo* first) const { ::freeaddrinfo(first); }
};

// Whether somebody accepts a connection there, which is let go again.
bool is_listened_at(const SocketAddress& address, TimePoint until) {
  const UniqueFd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return false;
  if (::connect(socket.get(), address.get(), address.size()) == 0) return true;
  if (errno != EINPROGRESS) return false;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd waiting{socket.get(), POLLOUT, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(left.count()));
    if (ready > 0) break;
    if (ready < 0 && errno != EINTR) return false;
  }
  int reason = 0;
  socklen_t size = sizeof reason;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &reason, &size);
  return reason == 0;
}

class LoopConnection final : public HttpClientConnection,
                             private ReadySink,
                             private HttpAnswerParts {
 public:
  LoopConnection(EventLoop& loop, const HttpClientTarget& target, HttpAnswerSink& sink)
      : loop_(loop.parts()), target_(target), sink_(sink), reader_(*this) {}
  ~LoopConnection() override {
    *is_gone_ = true;
    if (handle_) loop_.remove(*handle_);
  }

  Status connect();

  void send(std::string_view bytes) override {
    MUSTER_CHECK(unsent_.empty() && !is_waiting_);
    unsent_ = bytes;
    is_waiting_ = true;
    if (state_ == State::Open) send_more();
  }

 private:
  enum class State : std::uint8_t { Connecting, Handshake, Open, Failed };

  void on_ready(std::uint32_t events) override;
  void on_head(int status, const HttpHeaders& headers) override { sink_.on_head(status, headers); }
  void on_body(std::string_view bytes) override { sink_.on_body(bytes); }

  void finish_connecting();
  void shake_hands();
  void become_open();
  void send_more();
  void receive();
  bool take(std::span<const char> bytes);
  void finish();
  void end_of_stream();
  void want(std::uint32_t events);
  void want_for(const IoOutcome& outcome);
  void fail(std::string why, ErrorKind kind = ErrorKind::Unavailable);

  EventLoop::Parts& loop_;
  const HttpClientTarget& target_;
  HttpAnswerSink& sink_;
  HttpAnswerReader reader_;
  UniqueFd socket_;
  std::unique_ptr<Transport> transport_;
  std::optional<EventLoop::Parts::Handle> handle_;
  std::uint32_t wanted_ = 0;
  State state_ = State::Connecting;
  int refusal_ = 0;  // errno of connect(2)
  std::string_view unsent_;
  bool is_waiting_ = false;  // for the end of an answer
  std::string unread_;       // what the reader has left over
  // Callbacks may destroy this; a copy outlives it.
  std::shared_ptr<bool> is_gone_ = std::make_shared<bool>(false);
};

Status LoopConnection::connect() {
  socket_.reset(::socket(target_.address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_.is_open()) return system_error(target_.url.address(), "open a socket", errno);
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  transport_ = target_.tls ? target_.tls->connect(socket_.get(), target_.url.host)
                           : plain_transport(socket_.get());
  // A refusal at once is reported by the loop as well: a socket without a peer is hung up.
  if (::connect(socket_.get(), target_.address.get(), target_.address.size()) != 0 &&
      errno != EINPROGRESS) {
    refusal_ = errno;
  }
  wanted_ = EPOLLOUT;
  handle_ = loop_.add(socket_.get(), wanted_, *this);
  return Done{};
}

void LoopConnection::want(std::uint32_t events) {
  if (events == wanted_) return;
  wanted_ = events;
  loop_.change(*handle_, events);
}

void LoopConnection::want_for(const IoOutcome& outcome) {
  want(outcome.needs_write ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void LoopConnection::fail(std::string why, ErrorKind kind) {
  if (state_ == State::Failed) return;
  state_ = State::Failed;
  loop_.remove(*handle_);
  handle_.reset();
  sink_.on_failed({kind, fmt::format("{}: {}", target_.url.address(), why)});
}

void LoopConnection::on_ready(std::uint32_t events) {
  const auto is_gone = is_gone_;
  if (state_ == State::Connecting) return finish_connecting();
  if (state_ == State::Handshake) return shake_hands();
  if ((events & EPOLLOUT) != 0 && !unsent_.empty()) send_more();
  if (*is_gone || state_ != State::Open) return;
  if ((events & ~std::uint32_t{EPOLLOUT}) != 0 || unsent_.empty()) receive();
}

void LoopConnection::finish_connecting() {
  int reason = refusal_;
  socklen_t size = sizeof reason;
  if (reason == 0) ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &reason, &size);
  if (reason != 0) return fail(fmt::format("cannot connect: {}", std::strerror(reason)));
  state_ = State::Handshake;
  shake_hands();
}

void LoopConnection::shake_hands() {
  const auto outcome = transport_->handshake();
  if (outcome.kind == IoOutcome::Kind::Done) return become_open();
  if (outcome.kind == IoOutcome::Kind::Later) return want_for(outcome);
  fail("no TLS connection: " + transport_->problem());
}

void LoopConnection::become_open() {
  state_ = State::Open;
  want(EPOLLIN);
  sink_.on_connected();
  // The owner may have sent a request from within that call, which then is on its way.
  if (!unsent_.empty()) send_more();
}

void LoopConnection::send_more() {
  while (!unsent_.empty()) {
    const auto outcome = transport_->write(unsent_, {});
    if (outcome.kind == IoOutcome::Kind::Later) return want_for(outcome);
    if (outcome.kind != IoOutcome::Kind::Done) {
      // A server that refuses a request before it is whole may have said why.
      unsent_ = {};
      want(EPOLLIN);
      return;
    }
    unsent_.remove_prefix(outcome.size);
  }
  want(EPOLLIN);
  sink_.on_sent();
}

void LoopConnection::receive() {
  // All connections of a thread read into one buffer: what the reader leaves is kept apart.
  thread_local std::vector<char> buffer(kReadSize);
  const auto is_gone = is_gone_;
  // One piece at a time; what is left is told again, when others have had their turn.
  const auto outcome = transport_->read(buffer);
  switch (outcome.kind) {
    case IoOutcome::Kind::Later:
      return want_for(outcome);
    case IoOutcome::Kind::End:
      return end_of_stream();
    case IoOutcome::Kind::Failed:
      return fail(transport_->problem().empty() ? "the connection was broken off"
                                                : transport_->problem());
    case IoOutcome::Kind::Done:
      break;
  }
  if (!is_waiting_) return fail("the server sent something that was not asked for");
  const auto piece = std::span<const char>(buffer).first(outcome.size);
  if (unread_.empty()) {
    take(piece);
  } else {
    unread_.append(piece.data(), piece.size());
    const auto bytes = std::exchange(unread_, {});
    take(bytes);
  }
  // TLS may hold more that has come, of which the socket says nothing.
  if (!*is_gone && state_ == State::Open && target_.tls && is_waiting_) receive();
}

// False when this is gone.
bool LoopConnection::take(std::span<const char> bytes) {
  const auto taken = reader_.put(bytes);
  unread_.assign(bytes.data() + taken, bytes.size() - taken);
  const auto is_gone = is_gone_;
  if (reader_.problem()) {
    fail(*reader_.problem(), ErrorKind::Corrupt);
  } else if (reader_.is_done()) {
    finish();
  }
  return !*is_gone;
}

void LoopConnection::finish() {
  // An answer that came before the request was sent whole leaves a stream of no more use.
  const bool keeps_alive = reader_.keeps_alive() && unsent_.empty() && unread_.empty();
  reader_.reset();
  unsent_ = {};
  is_waiting_ = false;
  sink_.on_end(keeps_alive);
}

void LoopConnection::end_of_stream() {
  if (!is_waiting_) return fail("the server closed the connection");
  reader_.put_end();
  if (reader_.problem()) return fail(*reader_.problem());
  reader_.reset();
  unsent_ = {};
  is_waiting_ = false;
  sink_.on_end(false);
}

}  // namespace

Result<HttpClientTarget> HttpClientTarget::find(std::string_view url, const TlsClientOptions& tls) {
  auto parsed = MUSTER_TRY(parse_http_url(url));
  if (!parsed.unix_path.empty()) {
    return Error{
        ErrorKind::Unsupported,
        fmt::format("{}: many connections at once go to a port, not to a Unix socket: name "
                    "the server's http://HOST:PORT",
                    parsed.address())};
  }
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int failure =
      ::getaddrinfo(parsed.host.c_str(), std::to_string(parsed.port).c_str(), &wanted, &first);
  if (failure != 0 || first == nullptr) {
    return Error{ErrorKind::NotFound, fmt::format("{}: the host cannot be found: {}",
                                                  parsed.address(), ::gai_strerror(failure))};
  }
  const std::unique_ptr<addrinfo, AddressesFree> addresses(first);
  HttpClientTarget target{.url = std::move(parsed), .address = {}, .tls = {}};
  if (target.url.is_tls) target.tls = MUSTER_TRY(TlsContext::for_client(tls));
  std::vector<SocketAddress> found;
  for (const auto* one = first; one != nullptr; one = one->ai_next) {
    auto& address = found.emplace_back();
    std::memcpy(address.get(), one->ai_addr, one->ai_addrlen);
    *address.size_in_out() = one->ai_addrlen;
  }
  target.address = first_that_listens(found, kFindLimit);
  return target;
}

SocketAddress HttpClientTarget::first_that_listens(std::span<const SocketAddress> addresses,
                                                   Duration limit) {
  MUSTER_CHECK(!addresses.empty());
  if (addresses.size() == 1) return addresses.front();
  const auto until = std::chrono::steady_clock::now() + limit;
  const auto found = std::ranges::find_if(
      addresses, [&](const SocketAddress& one) { return is_listened_at(one, until); });
  return found == addresses.end() ? addresses.front() : *found;
}

Result<std::unique_ptr<HttpClientConnection>> HttpClientConnection::open(
    EventLoop& loop, const HttpClientTarget& target, HttpAnswerSink& sink) {
  auto connection = std::make_unique<LoopConnection>(loop, target, sink);
  MUSTER_TRY(connection->connect());
  return std::unique_ptr<HttpClientConnection>(std::move(connection));
}

std::string http_request_head(const HttpUrl& url, std::string_view method, std::string_view target,
                              const HttpHeaders& headers, std::size_t body_size) {
  auto head =
      fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\n", method, url.path, target, url.address());
  if (body_size > 0 || method != "GET") head += fmt::format("Content-Length: {}\r\n", body_size);
  for (const auto& [name, value] : headers) head += fmt::format("{}: {}\r\n", name, value);
  return head + "\r\n";
}

}  // namespace muster

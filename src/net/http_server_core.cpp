// What all connections share, and what bounds their number. Connections lie in a table without
// gaps: removing one moves the last into its place, so a sweep over the deadlines is a walk
// through an array. A newcomer who finds no place takes that of the connection idle longest.
// Accepting pauses when descriptors run out and is tried again by the sweep, instead of
// spinning.

#include "net/http_server_core.h"

#include <arpa/inet.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "net/http_connection.h"

namespace muster {
namespace {

constexpr std::size_t kReadSize = 64 << 10;
constexpr auto kSweepPeriod = std::chrono::milliseconds(250);
constexpr int kAcceptsMost = 64;               // of one wake-up, so that others have their turn
constexpr std::size_t kRefusedTogether = 256;  // connections that are one too many and told so
constexpr auto kDrainPeriod = std::chrono::milliseconds(20);
// All connections are looked at for one to evict; no more often than this, whoever asks for room.
constexpr auto kEvictionPeriod = std::chrono::milliseconds(50);

}  // namespace

HttpServerCore::HttpServerCore(const HttpServerOptions& server_options, EventLoop& event_loop,
                               HttpHandler request_handler)
    : options(server_options),
      handler(std::move(request_handler)),
      loop(event_loop),
      parts(event_loop.parts()),
      budget(server_options.memory_most),
      buffer(kReadSize),
      sweep_timer_(event_loop.timer([this] { sweep(); })),
      drain_timer_(event_loop.timer([this] { look_whether_sent(); })) {}

HttpServerCore::~HttpServerCore() {
  on_sent_ = nullptr;
  stop_listening();
  while (!places_.empty()) places_.back().connection->close();
}

Status HttpServerCore::listen() {
  if (options.tls) tls_ = MUSTER_TRY(TlsContext::for_server(*options.tls));
  if (options.listens_on_port) MUSTER_TRY(listen_on_port());
  if (options.unix_socket) {
    unix_listener_ = MUSTER_TRY(UnixListener::listen(*options.unix_socket));
    entrances_.push_back({.fd = unix_listener_.fd(), .is_unix = true});
  }
  for (auto& entrance : entrances_) entrance.handle = parts.add(entrance.fd, EPOLLIN, *this);
  return Done{};
}

Status HttpServerCore::listen_on_port() {
  const auto& host = options.listen.host;
  const bool is_v6 = host.find(':') != std::string::npos;
  const auto place =
      fmt::format("{}:{}", is_v6 ? fmt::format("[{}]", host) : host, options.listen.port);
  const auto fail = [&](std::string_view what, int error) {
    if (error == EADDRINUSE) {
      return Error{ErrorKind::Unavailable,
                   fmt::format("{}: another program listens there: end it, or name another port "
                               "with --listen",
                               place)};
    }
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{}: cannot {}: {}", place, what, std::strerror(error))};
  };
  auto address = SocketAddress::parse(host == "localhost" ? "127.0.0.1" : host);
  if (!address) return fail("listen on what is no address", EINVAL);
  address->set_port(options.listen.port);
  listener_ = UniqueFd(
      ::socket(address->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!listener_.is_open()) return fail("listen", errno);
  const int on = 1;
  ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // Inherited by what is accepted: a short answer goes out at once.
  ::setsockopt(listener_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::bind(listener_.get(), address->get(), address->size()) != 0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0) {
    return fail("listen", errno);
  }
  port_ = SocketAddress::of_socket(listener_.get()).port();
  entrances_.push_back({.fd = listener_.get()});
  return Done{};
}

Status HttpServerCore::reload_tls(const TlsOptions& tls) {
  if (!tls_) {
    return Error{ErrorKind::InvalidArgument, "a server that listens without TLS stays without it"};
  }
  tls_ = MUSTER_TRY(TlsContext::for_server(tls));
  return Done{};
}

void HttpServerCore::stop_listening() {
  // The places stay: one of them may be in use further up the stack.
  for (auto& entrance : entrances_) {
    if (entrance.handle) parts.remove(*entrance.handle);
    entrance = {};
  }
  listener_.reset();
  unix_listener_.close();
}

void HttpServerCore::drain(std::function<void()> on_sent) {
  is_closing = true;
  on_sent_ = std::move(on_sent);
  for (auto i = places_.size(); i > 0; --i) {
    const auto connection = places_[i - 1].connection;
    connection->begin_end();
  }
  drain_timer_->set(now());
}

void HttpServerCore::give_up() {
  for (auto i = places_.size(); i > 0; --i) {
    const auto connection = places_[i - 1].connection;
    connection->give_up();
  }
}

// Nobody tells when a client's system has taken the last byte.
void HttpServerCore::look_whether_sent() {
  const bool is_busy = std::any_of(places_.begin(), places_.end(), [](const Place& place) {
    return place.connection->is_owed_an_answer();
  });
  if (is_busy) return drain_timer_->set(std::chrono::steady_clock::now() + kDrainPeriod);
  if (const auto on_sent = std::exchange(on_sent_, nullptr)) on_sent();
}

bool HttpServerCore::may_hold(const HttpConnection& asking, std::uint64_t before,
                              std::uint64_t after) {
  if (budget.has_room(before, after)) return true;
  if (now() < next_eviction_) return false;
  next_eviction_ = now() + kEvictionPeriod;
  std::vector<std::pair<double, std::shared_ptr<HttpConnection>>> slow;
  for (const Place& place : places_) {
    if (place.connection.get() == &asking) continue;
    if (const auto rate = place.connection->slow_rate()) slow.emplace_back(*rate, place.connection);
  }
  std::sort(slow.begin(), slow.end(),
            [](const auto& left, const auto& right) { return left.first < right.first; });
  for (const auto& [rate, connection] : slow) {
    connection->evict();
    if (budget.has_room(before, after)) return true;
  }
  return false;
}

void HttpServerCore::on_ready(std::uint32_t /*events*/) {
  for (auto& entrance : entrances_) {
    for (int i = 0; i < kAcceptsMost && entrance.handle; ++i) {
      if (!accept_one(entrance)) break;
    }
  }
}

// False: nobody waits there any more, or nothing is left to accept with.
bool HttpServerCore::accept_one(Entrance& entrance) {
  SocketAddress peer;
  auto* const address = entrance.is_unix ? nullptr : peer.get();
  auto* const size = entrance.is_unix ? nullptr : peer.size_in_out();
  UniqueFd socket(::accept4(entrance.fd, address, size, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.is_open()) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return true;
    // Nothing left to accept with: the sweep tries again.
    ++counters.refused_connections;
    parts.remove(*entrance.handle);
    entrance.handle.reset();
    sweep_timer_->set(now() + kSweepPeriod);
    return false;
  }
  ++counters.accepted;
  admit(std::move(socket), entrance.is_unix, peer);
  return true;
}

void HttpServerCore::admit(UniqueFd socket, bool is_unix, const SocketAddress& peer) {
  if (places_.empty()) sweep_timer_->set(now() + kSweepPeriod);
  const bool is_one_too_many = places_.size() >= options.connections_most && !make_place();
  if (is_one_too_many) ++counters.refused_connections;
  if (places_.size() >= options.connections_most + kRefusedTogether) return;
  // What goes through the file system needs no TLS.
  const bool has_tls = tls_ && !is_unix;
  // A handshake only to refuse would be work done for whoever has brought us here.
  if (is_one_too_many && has_tls) return;
  auto transport = has_tls ? tls_->accept(socket.get()) : plain_transport(socket.get());
  const auto user = is_unix ? UnixPeer::of(socket.get()) : UnixPeer{};
  const auto connection = std::make_shared<HttpConnection>(
      *this, std::move(socket), std::move(transport), is_unix ? user.text() : peer.text(),
      is_unix ? user.is_own_user() : peer.is_loopback(), places_.size());
  places_.push_back({TimePoint::max(), connection});
  if (is_one_too_many) {
    connection->start_refused(
        {.status = 503, .body = "too many connections\n", .headers = {{"Retry-After", "1"}}});
  } else {
    connection->start();
  }
}

// The newcomer is more likely to ask than whoever has been silent longest.
bool HttpServerCore::make_place() {
  auto* const longest = idle.longest();
  if (longest == nullptr) return false;
  const auto connection = static_cast<HttpConnection*>(longest)->shared_from_this();
  if (!connection->close_if_idle()) return false;
  ++counters.idle_evicted;
  return true;
}

void HttpServerCore::forget(std::size_t place) {
  if (place + 1 < places_.size()) {
    places_[place] = std::move(places_.back());
    places_[place].connection->place = place;
  }
  places_.pop_back();
}

// One timer for all connections; a deadline is kept to within a quarter of a second.
void HttpServerCore::sweep() {
  // From the end: the one that takes the place of one that goes was looked at already.
  for (auto i = places_.size(); i > 0; --i) {
    if (places_[i - 1].deadline > now()) continue;
    const auto connection = places_[i - 1].connection;
    connection->on_deadline();
  }
  for (auto& entrance : entrances_) {
    const bool is_paused = entrance.fd >= 0 && !entrance.handle;
    if (is_paused) entrance.handle = parts.add(entrance.fd, EPOLLIN, *this);
  }
  if (!places_.empty()) sweep_timer_->set(now() + kSweepPeriod);
}

std::string_view HttpServerCore::date() {
  const auto second = std::time(nullptr);
  if (second != std::exchange(date_second_, second)) {
    date_ = fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(second));
  }
  return date_;
}

}  // namespace muster

#pragma once

#include <algorithm>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "net/event_loop_parts.h"
#include "net/http_server.h"
#include "net/idle_list.h"
#include "net/socket_address.h"
#include "net/tls.h"
#include "net/unix_socket.h"

namespace muster {

class HttpConnection;

/// What the connections of a server share: its options, the one buffer they all read into, the date
/// and the table of deadlines.
///
/// Threads: the loop's, or any while it does not run.
class HttpServerCore final : public ReadySink {
 public:
  HttpServerCore(const HttpServerOptions& options, EventLoop& loop, HttpHandler handler);
  ~HttpServerCore();
  HttpServerCore(const HttpServerCore&) = delete;
  HttpServerCore& operator=(const HttpServerCore&) = delete;

  Status listen();
  Status reload_tls(const TlsOptions& tls);
  void stop_listening();
  void drain(std::function<void()> on_sent);
  void give_up();
  std::uint16_t port() const { return port_; }
  std::size_t connection_count() const { return places_.size(); }

  /// For connections. `place` is theirs and is kept up to date.
  void set_deadline(std::size_t place, TimePoint at) { places_[place].deadline = at; }
  void extend_deadline(std::size_t place, Duration more, TimePoint most) {
    places_[place].deadline = std::min(places_[place].deadline + more, most);
  }
  /// Whether one who holds `before` may hold `after`; those who are slow with much make room.
  bool may_hold(const HttpConnection& asking, std::uint64_t before, std::uint64_t after);
  void forget(std::size_t place);
  TimePoint now() const { return parts.woke_at; }
  std::string_view date();

  const HttpServerOptions options;
  const HttpHandler handler;
  EventLoop& loop;
  EventLoop::Parts& parts;
  HttpServerCounters counters;
  MemoryBudget budget;
  IdleList idle;
  bool is_closing = false;
  std::vector<char> buffer;  // what a read has brought; empty again when the callback returns

 private:
  struct Place {
    TimePoint deadline;
    std::shared_ptr<HttpConnection> connection;
  };

  /// One place where clients come in.
  struct Entrance {
    int fd = -1;  // borrowed; -1: nobody comes in any more
    bool is_unix = false;
    std::optional<EventLoop::Parts::Handle> handle = {};  // not while descriptors are wanting
  };

  void on_ready(std::uint32_t events) override;
  Status listen_on_port();
  bool accept_one(Entrance& entrance);
  void admit(UniqueFd socket, bool is_unix, const SocketAddress& peer);
  bool make_place();
  void sweep();
  void look_whether_sent();

  std::shared_ptr<TlsContext> tls_;  // nullptr: plain
  UniqueFd listener_;
  UnixListener unix_listener_;
  std::vector<Entrance> entrances_;
  std::uint16_t port_ = 0;
  std::vector<Place> places_;
  std::unique_ptr<EventLoop::Timer> sweep_timer_;
  std::unique_ptr<EventLoop::Timer> drain_timer_;
  std::function<void()> on_sent_;
  TimePoint next_eviction_{};
  std::time_t date_second_ = -1;
  std::string date_;
};

}  // namespace muster

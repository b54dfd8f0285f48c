#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "net/event_loop_parts.h"
#include "net/http_request_reader.h"
#include "net/http_server_core.h"
#include "net/transport.h"

namespace muster {

/// One client of an HttpServer: a state machine driven by the readiness of its socket, by answers
/// and by its deadline.
///
/// Threads: the loop's.
class HttpConnection final : public ReadySink, public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(HttpServerCore& core, UniqueFd socket, std::unique_ptr<Transport> transport,
                 std::string peer, bool is_loopback_peer, std::size_t place);
  ~HttpConnection();

  void start();
  void start_refused(const HttpResponse& refusal);
  void on_deadline();
  void close_when_idle();
  void close();

  /// Where it stands in the core's table.
  std::size_t place;

 private:
  class Exchange;

  enum class State : std::uint8_t {
    Handshake,
    Idle,       // between requests
    Reading,    // a request has begun
    Waiting,    // for its answer
    Sending,    // the answer
    Lingering,  // all is said; the client has yet to end its side
    Closed,
  };

  void on_ready(std::uint32_t events) override;
  void on_readable();
  void on_end(bool is_broken);
  bool shake_hands();
  void feed(std::string_view bytes);
  bool feed_reader(std::string_view& input);
  void keep(std::string_view rest);
  void resume();
  void resume_later();
  void hand_over();
  void deliver(HttpResponse response);
  void send(HttpResponse response);
  void refuse(HttpResponse response);
  void flush();
  void finish_answer();
  void linger();
  void tell_gone();
  void enter(State state, Duration limit);
  void enter(State state);
  void update_interest();
  bool is_reading_wanted() const;
  std::size_t unread_size() const { return unread_.size() - unread_at_; }

  HttpServerCore& core_;
  UniqueFd socket_;
  std::unique_ptr<Transport> transport_;
  std::string peer_;
  bool is_loopback_peer_;
  State state_ = State::Handshake;
  std::optional<EventLoop::Parts::Handle> handle_;
  std::uint32_t interest_ = 0;
  bool has_ended_ = false;   // the client's side, and all it sent was read
  bool is_leaving_ = false;  // it has ended its side, behind bytes that are not read yet
  bool needs_write_ = false;
  bool is_feeding_ = false;
  bool keeps_alive_ = false;
  bool has_body_ = true;

  std::string unread_;  // bytes that no request has taken yet, from `unread_at_` on
  std::size_t unread_at_ = 0;
  std::optional<HttpRequestReader> reader_;
  std::shared_ptr<Exchange> exchange_;
  std::optional<HttpResponse> early_answer_;  // given while its request was being handed over
  std::string head_;                          // what is to be sent: this, then `body_`
  std::string body_;
  std::size_t sent_ = 0;
};

}  // namespace muster

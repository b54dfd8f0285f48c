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
class HttpConnection final : public ReadySink,
                             public IdleLink,
                             public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(HttpServerCore& core, UniqueFd socket, std::unique_ptr<Transport> transport,
                 std::string peer, bool is_loopback_peer, std::size_t place);
  ~HttpConnection();

  void start();
  void start_refused(const HttpResponse& refusal);
  void on_deadline();
  void close();

  /// The server is to end: what is idle is closed, and a request that is not whole is told 503.
  void begin_end();
  /// Whoever waits for an answer is told 503.
  void give_up();
  /// A request has no answer yet, or its client has not taken all of it.
  bool is_owed_an_answer() const;
  /// False when a request has begun.
  bool close_if_idle();

  /// Bytes a second of one who has long held much and takes or sends little; nullopt: another one.
  std::optional<double> slow_rate();
  /// It makes room for others.
  void evict();

  /// Where it stands in the core's table.
  std::size_t place;

 private:
  class Exchange;

  // A reader that stalls is looked at so often before it is cut off.
  static constexpr int kLooks = 16;
  // Of a string that waits for the next request.
  static constexpr std::size_t kKeptCapacity = 4 << 10;

  enum class State : std::uint8_t {
    Handshake,
    Idle,       // between requests
    Reading,    // a request has begun
    Waiting,    // for its answer
    Streaming,  // an answer in parts, which is not whole yet
    Sending,    // the answer, or what is left of it
    Lingering,  // all is said; the client has yet to end its side
    Closed,
  };

  void on_ready(std::uint32_t events) override;
  void on_readable();
  void on_end(bool is_broken);
  bool shake_hands();
  void feed(std::string_view bytes);
  bool feed_reader(std::string_view& input);
  bool begin_request(std::string_view& input);
  bool judge_head(std::string_view& input);
  void answer_head(HttpResponse response, std::string_view& input);
  void after_reading();
  void keep(std::string_view rest);
  void resume();
  void resume_later();
  void hand_over();
  void deliver(HttpResponse&& response);
  void send(HttpResponse&& response);
  bool begin_stream(HttpResponse&& head);
  bool write_part(std::string_view bytes);
  void end_stream();
  void append_part(std::string_view bytes);
  void tell_room();
  void cut_off();
  void break_off();
  void reset_at_end() const;
  static void empty(std::string& text);
  static std::uint64_t large(const std::string& text);
  std::size_t unsent_size() const { return head_.size() + body_.size() - sent_ + waiting_.size(); }
  void fit(HttpResponse& response);
  HttpResponse dressed(HttpResponse refusal);
  void refuse(HttpResponse response);
  void refuse_for_memory();
  void flush();
  void look_at_reader();
  bool has_progressed();
  int unacknowledged_bytes() const;
  void finish_answer();
  void linger();
  void tell_gone();
  void enter(State state, Duration limit);
  void enter(State state);
  void enter_at(State state, TimePoint deadline);
  bool hold(std::uint64_t request_bytes, std::uint64_t answer_bytes);
  void account();
  std::uint64_t bytes_held() const;
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
  std::weak_ptr<void> judged_;                // of the request that the handler has
  std::optional<HttpResponse> early_answer_;  // given while its request was being handed over
  std::string head_;                          // what is to be sent: this, then `body_`
  std::string body_;
  std::string waiting_;  // parts that have come while `head_` and `body_` are being sent
  std::size_t sent_ = 0;

  std::uint64_t head_bytes_ = 0;     // of a request's headers, if they are many or long
  std::uint64_t request_bytes_ = 0;  // that its request makes us hold, while it waits
  std::uint64_t answer_bytes_ = 0;   // of `body_`, until it is sent
  std::uint64_t counted_bytes_ = 0;  // of all that it holds, as the budget knows it
  TimePoint began_{};                // the request, or its answer
  TimePoint progress_at_{};          // when the client last took, or sent, something
  int unacknowledged_ = 0;           // when it was looked at last
  std::size_t body_seen_ = 0;        // bytes of the body that time was given for
  bool is_judged_ = false;           // the request, by its head
  bool was_refused_ = false;         // and may still be sending
  bool is_late_ = false;             // the request: it began after the server's end did
  bool is_http10_ = false;           // the request
  bool is_full_ = false;             // the writer of parts waits for room
  bool is_being_sent_ = false;       // `head_` and `body_`: they must not change
  bool is_broken_ = false;           // while parts were being sent; what follows is dropped
};

}  // namespace muster

#include "net/http_connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace muster {
namespace {

constexpr auto kLingerLimit = std::chrono::seconds(2);
// Bytes of later requests that are kept while one is being answered; beyond that the client waits.
constexpr std::size_t kUnreadMost = 64 << 10;
constexpr std::size_t kKeptCapacity = 4 << 10;  // of a string that waits for the next request
// What a body that comes without a pause brings at least: so much longer may a long one take.
constexpr long kBytesPerSecondLeast = 32 << 10;
constexpr Duration kSecond = std::chrono::seconds(1);
constexpr int kReadsMost = 16;     // of one wake-up, so that others have their turn
constexpr int kRequestsMost = 64;  // of one feeding, likewise
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

void empty(std::string& text) {
  text.clear();
  if (text.capacity() > kKeptCapacity) text.shrink_to_fit();
}

}  // namespace

// It outlives its connection if the answer does: then `connection` is nullptr.
class HttpConnection::Exchange final : public HttpExchange,
                                       public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(EventLoop& loop, HttpConnection& owner) : connection(&owner), loop_(loop) {}

  void respond(HttpResponse response) override {
    if (is_answered.exchange(true)) return;
    if (loop_.parts().is_on_loop()) return pass_on(std::move(response));
    loop_.post([self = shared_from_this(), answer = std::move(response)]() mutable {
      self->pass_on(std::move(answer));
    });
  }

  void on_client_gone(std::function<void()> call) override {
    if (connection == nullptr || is_answered) return;
    gone = std::move(call);
    if (!connection->has_ended_ && !connection->is_leaving_) return;
    loop_.post([self = shared_from_this()] {
      if (self->connection != nullptr) self->connection->tell_gone();
    });
  }

  HttpConnection* connection;  // on the loop's thread
  std::function<void()> gone;  // on the loop's thread
  std::atomic<bool> is_answered = false;

 private:
  void pass_on(HttpResponse response) {
    gone = nullptr;
    if (connection != nullptr) connection->deliver(std::move(response));
  }

  EventLoop& loop_;
};

HttpConnection::HttpConnection(HttpServerCore& core, UniqueFd socket,
                               std::unique_ptr<Transport> transport, std::string peer,
                               bool is_loopback_peer, std::size_t place_in_table)
    : place(place_in_table),
      core_(core),
      socket_(std::move(socket)),
      transport_(std::move(transport)),
      peer_(std::move(peer)),
      is_loopback_peer_(is_loopback_peer) {}

HttpConnection::~HttpConnection() = default;

void HttpConnection::start() {
  interest_ = EPOLLIN;
  handle_ = core_.parts.add(socket_.get(), interest_, *this);
  enter(State::Handshake, core_.options.request_limit);
  if (shake_hands()) on_readable();  // the first request has often come with the connection
}

void HttpConnection::start_refused(const HttpResponse& refusal) {
  interest_ = EPOLLIN;
  handle_ = core_.parts.add(socket_.get(), interest_, *this);
  refuse(refusal);
  update_interest();
}

void HttpConnection::close() {
  if (state_ == State::Closed) return;
  const auto held = shared_from_this();
  state_ = State::Closed;
  if (exchange_) exchange_->connection = nullptr;
  exchange_.reset();
  if (handle_) core_.parts.remove(*handle_);
  transport_->end();
  transport_.reset();
  socket_.reset();
  core_.forget(place);
}

void HttpConnection::close_when_idle() {
  keeps_alive_ = false;
  if (state_ == State::Idle && unread_size() == 0) close();
}

void HttpConnection::enter(State state, Duration limit) {
  state_ = state;
  core_.set_deadline(place, core_.now() + limit);
}

void HttpConnection::enter(State state) {
  state_ = state;
  core_.set_deadline(place, TimePoint::max());
}

bool HttpConnection::is_reading_wanted() const {
  return !has_ended_ && (state_ == State::Reading || unread_size() < kUnreadMost);
}

void HttpConnection::update_interest() {
  if (state_ == State::Closed) return;
  std::uint32_t wanted = needs_write_ ? std::uint32_t{EPOLLOUT} : 0;
  if (is_reading_wanted()) {
    wanted |= EPOLLIN;
  } else if (!has_ended_ && !is_leaving_) {
    wanted |= EPOLLRDHUP;  // the end of a client is seen behind bytes that are not read
  }
  if (wanted == interest_) return;
  interest_ = wanted;
  core_.parts.change(*handle_, wanted);
}

void HttpConnection::on_ready(std::uint32_t events) {
  const auto held = shared_from_this();
  constexpr std::uint32_t kBroken = EPOLLERR | EPOLLHUP;
  if (state_ == State::Handshake && !shake_hands()) return;
  // TLS may have to read before it can write, and the other way round.
  if (sent_ < head_.size() + body_.size() || (events & EPOLLOUT) != 0) flush();
  if (state_ == State::Closed) return;
  if (is_reading_wanted()) {
    on_readable();
  } else if ((events & kBroken) != 0) {
    on_end(true);
  } else if ((events & EPOLLRDHUP) != 0) {
    is_leaving_ = true;
    if (state_ == State::Waiting && exchange_->gone) return tell_gone();
  }
  update_interest();
}

bool HttpConnection::shake_hands() {
  const auto outcome = transport_->handshake();
  if (outcome.kind == IoOutcome::Kind::Done) {
    needs_write_ = false;
    enter(State::Idle, core_.options.idle_limit);
    return true;
  }
  if (outcome.kind != IoOutcome::Kind::Later) {
    ++core_.counters.failed_handshakes;
    if (outcome.is_plain_http) {
      transport_ = plain_transport(socket_.get());
      refuse({.status = 400, .body = "this port speaks TLS: use https://\n"});
      update_interest();
    } else {
      close();
    }
    return false;
  }
  needs_write_ = outcome.needs_write;
  update_interest();
  return false;
}

void HttpConnection::on_readable() {
  for (int i = 0; i < kReadsMost && state_ != State::Closed && is_reading_wanted(); ++i) {
    const auto outcome = transport_->read(core_.buffer);
    if (outcome.kind == IoOutcome::Kind::Later) {
      needs_write_ |= outcome.needs_write;
      return;
    }
    if (outcome.kind != IoOutcome::Kind::Done) {
      return on_end(outcome.kind == IoOutcome::Kind::Failed);
    }
    if (state_ != State::Lingering) feed({core_.buffer.data(), outcome.size});
    if (outcome.size < core_.buffer.size()) return;  // that was all; if not, it is told again
  }
}

void HttpConnection::on_end(bool is_broken) {
  has_ended_ = true;
  if (state_ == State::Waiting && (is_broken || exchange_->gone)) return tell_gone();
  const bool has_more = state_ == State::Waiting || state_ == State::Sending ||
                        (state_ == State::Idle && unread_size() > 0);
  if (is_broken || !has_more) return close();
  update_interest();  // a client that has only ended its side gets its answers
}

// The caller holds this connection.
void HttpConnection::tell_gone() {
  const auto held = shared_from_this();
  const auto exchange = exchange_;
  close();
  if (!exchange || exchange->is_answered.exchange(true)) return;
  ++core_.counters.clients_gone;
  const auto call = std::exchange(exchange->gone, nullptr);
  if (call) call();
}

void HttpConnection::on_deadline() {
  const auto held = shared_from_this();
  if (state_ == State::Reading) {
    ++core_.counters.slow_requests;
    refuse({.status = 408, .body = "the request did not come in time\n"});
    return update_interest();
  }
  if (state_ == State::Idle) {
    ++core_.counters.idle_closed;
  } else {
    // At once, with what was not sent yet thrown away.
    const ::linger at_once{1, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    if (state_ == State::Sending) ++core_.counters.slow_readers;
    if (state_ == State::Handshake) ++core_.counters.failed_handshakes;
  }
  close();
}

void HttpConnection::keep(std::string_view rest) {
  const bool is_inside =
      rest.data() >= unread_.data() && rest.data() <= unread_.data() + unread_.size();
  if (rest.empty()) {
    empty(unread_);
    unread_at_ = 0;
  } else if (is_inside) {
    unread_at_ = unread_.size() - rest.size();
  } else {
    unread_.assign(rest);
    unread_at_ = 0;
  }
}

void HttpConnection::feed(std::string_view bytes) {
  std::string_view input = bytes;
  if (unread_size() > 0) {
    unread_.erase(0, std::exchange(unread_at_, 0)).append(bytes);
    input = unread_;
  }
  is_feeding_ = true;
  int left = kRequestsMost;
  while (!input.empty() && (state_ == State::Idle || state_ == State::Reading)) {
    if (!feed_reader(input) || --left == 0) break;
  }
  if (state_ != State::Closed) keep(input);
  is_feeding_ = false;
  if (state_ == State::Reading) {
    core_.extend_deadline(place, kSecond * static_cast<long>(bytes.size()) / kBytesPerSecondLeast);
  }
  if (left == 0 && state_ == State::Idle && unread_size() > 0) resume_later();
  if (state_ == State::Sending || state_ == State::Waiting) update_interest();
}

// False when the request wants more bytes than there are.
bool HttpConnection::feed_reader(std::string_view& input) {
  if (!reader_) {
    if (core_.options.on_first_bytes) core_.options.on_first_bytes(input);
    reader_.emplace(core_.options.limits);
    enter(State::Reading, core_.options.request_limit);
  }
  input.remove_prefix(reader_->put(input));
  if (reader_->refusal()) {
    ++core_.counters.refused_requests;
    input = {};  // what follows cannot be read either
    refuse(*reader_->refusal());
    return false;
  }
  if (reader_->is_done()) {
    keep(input);  // the handler may take its time, and what `input` points into is for all
    hand_over();
    input = std::string_view(unread_).substr(unread_at_);
    return true;
  }
  if (reader_->take_expects_continue()) {
    head_ = kContinue;
    flush();
  }
  return false;
}

void HttpConnection::resume() {
  if (state_ != State::Idle) return;
  feed({});
  const bool is_over = has_ended_ && (state_ == State::Reading || unread_size() == 0);
  if (is_over && (state_ == State::Idle || state_ == State::Reading)) close();
  update_interest();
}

void HttpConnection::hand_over() {
  auto request = reader_->take();
  reader_.reset();
  request.peer = peer_;
  request.is_loopback_peer = is_loopback_peer_;
  request.client_name = transport_->peer_name();
  keeps_alive_ = request.wants_keep_alive && !core_.is_closing;
  has_body_ = request.method != "HEAD";
  enter(State::Waiting);  // how long an answer may take is the handler's matter
  ++core_.counters.requests;
  exchange_ = std::make_shared<Exchange>(core_.loop, *this);
  core_.handler(std::move(request), HttpRespond(exchange_));
  if (!early_answer_ || state_ != State::Waiting) return;
  auto answer = std::move(*early_answer_);
  early_answer_.reset();
  send(std::move(answer));
}

void HttpConnection::deliver(HttpResponse response) {
  if (state_ != State::Waiting) return;
  if (is_feeding_) {
    early_answer_ = std::move(response);
    return;
  }
  const auto held = shared_from_this();
  send(std::move(response));
  update_interest();
}

void HttpConnection::send(HttpResponse response) {
  if (exchange_) exchange_->connection = nullptr;
  exchange_.reset();
  append_response_head(head_, response, keeps_alive_, core_.date());
  if (has_body_) body_ = std::move(response.body);
  enter(State::Sending, core_.options.write_stall_limit);
  flush();
}

void HttpConnection::refuse(HttpResponse response) {
  if (core_.options.dress_refusal) core_.options.dress_refusal(response);
  reader_.reset();
  keeps_alive_ = false;
  has_body_ = true;
  send(std::move(response));
}

// Sends what it can of `head_` and `body_`.
void HttpConnection::flush() {
  needs_write_ = false;
  while (sent_ < head_.size() + body_.size()) {
    const auto of_head = std::min(sent_, head_.size());
    const auto outcome = transport_->write(std::string_view(head_).substr(of_head),
                                           std::string_view(body_).substr(sent_ - of_head));
    if (outcome.kind == IoOutcome::Kind::Later) {
      needs_write_ = outcome.needs_write;
      return;
    }
    if (outcome.kind != IoOutcome::Kind::Done) return close();
    sent_ += outcome.size;
    // The deadline is about a reader that takes nothing, not about a long answer.
    if (state_ == State::Sending) enter(State::Sending, core_.options.write_stall_limit);
  }
  sent_ = 0;
  empty(head_);
  body_ = {};
  if (state_ == State::Sending) finish_answer();
}

void HttpConnection::finish_answer() {
  if (!keeps_alive_) return linger();
  if (has_ended_ && unread_size() == 0) return close();
  enter(State::Idle, core_.options.idle_limit);
  if (!is_feeding_ && unread_size() > 0) resume_later();
}

// Not at once: whoever has given the answer does not expect the next request from within.
void HttpConnection::resume_later() {
  core_.loop.post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->resume();
  });
}

// Closing while the client still sends would reset the connection, and it might never read the
// answer. Source: RFC 9112, section 9.6.
void HttpConnection::linger() {
  if (has_ended_) return close();
  transport_->end();
  keep({});
  enter(State::Lingering, kLingerLimit);
}

}  // namespace muster

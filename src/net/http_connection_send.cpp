// How a connection answers, and what becomes of one whose client is slow or that has to end.
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "net/http_connection_exchange.h"

namespace muster {
namespace {

constexpr auto kLingerLimit = std::chrono::seconds(2);
// Who has held much for so long and moved less than this makes room for others: a tenth of what a
// line of 100 Mbit/s carries.
constexpr auto kPatience = std::chrono::seconds(1);
constexpr double kBytesPerSecondKept = 1 << 20;

HttpResponse no_room() {
  return {.status = 503,
          .body = "the server holds as much for its clients as it may\n",
          .headers = {{"Retry-After", "1"}}};
}

}  // namespace

void HttpConnection::empty(std::string& text) {
  text.clear();
  if (text.capacity() > kKeptCapacity) text.shrink_to_fit();
}

std::uint64_t HttpConnection::large(const std::string& text) {
  return text.capacity() > kKeptCapacity ? text.capacity() : 0;
}

// What was not sent yet is thrown away, and the client sees a reset.
void HttpConnection::reset_at_end() const {
  const ::linger at_once{1, 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

// ---- What it holds ----

// Of a body that is coming, what has come counts and as much again. The place for all that was
// announced is taken already, but nobody has touched it.
std::uint64_t HttpConnection::bytes_held() const {
  std::uint64_t body = 0;
  if (reader_ && reader_->is_head_done()) {
    const auto& text = reader_->request().body;
    body = std::min<std::uint64_t>(large(text), 2 * text.size());
  }
  return large(unread_) + body + head_bytes_ + request_bytes_ + answer_bytes_;
}

void HttpConnection::account() {
  const auto bytes = bytes_held();
  core_.budget.change(std::exchange(counted_bytes_, bytes), bytes);
}

// False: there is no room, and all is as before.
bool HttpConnection::hold(std::uint64_t request_bytes, std::uint64_t answer_bytes) {
  const auto request_before = std::exchange(request_bytes_, request_bytes);
  const auto answer_before = std::exchange(answer_bytes_, answer_bytes);
  if (core_.may_hold(*this, counted_bytes_, bytes_held())) {
    account();
    return true;
  }
  request_bytes_ = request_before;
  answer_bytes_ = answer_before;
  return false;
}

// What the systems between here and the reader hold makes any reader look fast at first. An answer
// that is not read need not be long: there may be thousands of them.
std::optional<double> HttpConnection::slow_rate() {
  const bool is_sending = state_ == State::Sending || state_ == State::Streaming;
  const auto much = is_sending ? kKeptCapacity : MemoryBudget::kSmallBytes;
  if (counted_bytes_ <= much) return std::nullopt;
  if (state_ != State::Reading && !is_sending) return std::nullopt;
  const auto now = core_.now();
  if (state_ == State::Streaming) {
    // How fast the parts come is not the reader's doing; what waits for it is.
    if (answer_bytes_ == 0) return std::nullopt;
    if (has_progressed()) progress_at_ = now;
    return now - progress_at_ >= kPatience ? std::optional(0.0) : std::nullopt;
  }
  auto bytes = static_cast<double>(body_seen_);
  if (state_ == State::Sending) {
    if (has_progressed()) progress_at_ = now;
    bytes = static_cast<double>(sent_) - unacknowledged_;
  }
  if (now - progress_at_ >= kPatience) return 0;
  const double rate = bytes / std::chrono::duration<double>(now - began_ + kPatience).count();
  return now - began_ >= kPatience && rate < kBytesPerSecondKept ? std::optional(rate)
                                                                 : std::nullopt;
}

void HttpConnection::evict() {
  ++core_.counters.memory_evictions;
  if (state_ == State::Reading) {
    keep({});
    refuse_for_memory();
    return update_interest();
  }
  // One that writes parts to another client may have asked for room: it is told later.
  reset_at_end();
  break_off();
}

// ---- Answers ----

// Makes room for the answer; where there is none, a refusal goes in its place.
void HttpConnection::fit(HttpResponse& response) {
  request_bytes_ = head_bytes_ = 0;
  const auto bytes = has_body_ ? large(response.body) : 0;
  // A refusal is short, and there is nothing else to say instead of it.
  if (bytes > 0 && !was_refused_) {
    if (hold(0, bytes)) return;
    ++core_.counters.memory_refusals;
    response = dressed(no_room());
    return fit(response);
  }
  answer_bytes_ = bytes;
  account();
}

void HttpConnection::send(HttpResponse&& response) {
  if (exchange_) exchange_->connection = nullptr;
  exchange_.reset();
  fit(response);
  judged_.reset();
  append_response_head(head_, response, HttpFraming::Length, keeps_alive_, core_.date());
  if (has_body_) body_ = std::move(response.body);
  began_ = progress_at_ = core_.now();
  unacknowledged_ = 0;
  enter(State::Sending, core_.options.write_stall_limit / kLooks);
  flush();
}

// In the form of the service. The connection ends with it.
HttpResponse HttpConnection::dressed(HttpResponse refusal) {
  HttpRefused refused{.peer = peer_, .client_name = {}, .method = {}, .path = {}};
  refused.judged = judged_.lock();
  const auto name = transport_->peer_name();
  refused.client_name = name;
  if (reader_ && reader_->is_head_done()) {
    refused.method = reader_->request().method;
    refused.path = reader_->request().path;
  }
  if (core_.options.dress_refusal) core_.options.dress_refusal(refusal, refused);
  reader_.reset();
  keeps_alive_ = false;
  was_refused_ = true;
  return refusal;
}

void HttpConnection::refuse(HttpResponse response) { send(dressed(std::move(response))); }

void HttpConnection::refuse_for_memory() {
  ++core_.counters.memory_refusals;
  refuse(no_room());
}

// Sends what it can of `head_` and `body_`, and of the parts that wait behind them: what is being
// sent must not change, since TLS may have to be given the same bytes again.
void HttpConnection::flush() {
  needs_write_ = false;
  do {
    while (sent_ < head_.size() + body_.size()) {
      is_being_sent_ = true;
      const auto of_head = std::min(sent_, head_.size());
      const auto outcome = transport_->write(std::string_view(head_).substr(of_head),
                                             std::string_view(body_).substr(sent_ - of_head));
      if (outcome.kind == IoOutcome::Kind::Later) {
        needs_write_ = outcome.needs_write;
        return;
      }
      if (outcome.kind != IoOutcome::Kind::Done) return break_off();
      sent_ += outcome.size;
      progress_at_ = core_.now();
    }
    is_being_sent_ = false;
    sent_ = 0;
    empty(head_);
    std::string().swap(body_);  // an assignment would keep its memory
    body_.swap(waiting_);
    answer_bytes_ = large(body_);
    account();
  } while (!body_.empty());
  if (state_ == State::Streaming) enter(State::Streaming);
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
  progress_at_ = core_.now();
  enter(State::Lingering, kLingerLimit);
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

// ---- Clients that are slow ----

int HttpConnection::unacknowledged_bytes() const {
  int bytes = 0;
  return ::ioctl(socket_.get(), SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

// Whether the client's system has taken something since this was asked last: its buffers may be so
// large that a reader at a good pace takes long to make room for the next write.
bool HttpConnection::has_progressed() {
  const int before = std::exchange(unacknowledged_, unacknowledged_bytes());
  return unacknowledged_ < before;
}

void HttpConnection::look_at_reader() {
  const auto limit = core_.options.write_stall_limit;
  if (has_progressed()) progress_at_ = core_.now();
  if (core_.now() - progress_at_ >= limit) {
    ++core_.counters.slow_readers;
    return cut_off();
  }
  enter(state_, std::min<Duration>(limit / kLooks, kLingerLimit));
}

void HttpConnection::on_deadline() {
  const auto held = shared_from_this();
  if (state_ == State::Reading) {
    ++core_.counters.slow_requests;
    refuse({.status = 408, .body = "the request did not come in time\n"});
    return update_interest();
  }
  if (state_ == State::Sending || state_ == State::Streaming) return look_at_reader();
  if (state_ == State::Lingering && unacknowledged_bytes() > 0) return look_at_reader();
  if (state_ == State::Idle) ++core_.counters.idle_closed;
  if (state_ == State::Handshake) {
    ++core_.counters.failed_handshakes;
    reset_at_end();
  }
  close();
}

// ---- The server's end ----

void HttpConnection::begin_end() {
  keeps_alive_ = false;
  if (state_ == State::Reading) {
    refuse({.status = 503, .body = "the server is ending\n", .headers = {{"Retry-After", "1"}}});
    return update_interest();
  }
  if (state_ != State::Idle || unread_size() > 0) return;
  if (unacknowledged_bytes() == 0) return close();
  linger();
  update_interest();
}

void HttpConnection::give_up() {
  if (state_ == State::Streaming) return tell_gone();
  if (state_ != State::Waiting) return;
  if (exchange_) {
    exchange_->is_answered = true;
    exchange_->gone = nullptr;
  }
  refuse({.status = 503, .body = "the server is ending\n", .headers = {{"Retry-After", "1"}}});
  update_interest();
}

bool HttpConnection::is_owed_an_answer() const {
  if (exchange_ || state_ == State::Sending) return true;
  // Clients that go on asking must not keep the server from ending.
  if (state_ != State::Lingering || is_late_) return false;
  return was_refused_ || unacknowledged_bytes() > 0;
}

}  // namespace muster

// One client's state machine: handshake, idle, reading, waiting, sending, lingering. Every state
// has a deadline, except waiting for the handler, whose time is its own. Bytes are counted
// against one budget for all connections as they come and go. Callbacks may close the
// connection, so a method that goes on after one holds a reference to itself.

#include "net/http_connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "net/http_connection_exchange.h"

namespace muster {
namespace {

// Bytes of later requests that are kept while one is being answered; beyond that the client waits.
constexpr std::size_t kUnreadMost = 64 << 10;
// What a body brings at least: so much longer may a long one take.
constexpr long kBytesPerSecondLeast = 32 << 10;
constexpr Duration kSecond = std::chrono::seconds(1);
constexpr int kReadsMost = 16;     // of one wake-up, so that others have their turn
constexpr int kRequestsMost = 64;  // of one feeding, likewise
// Headers take no more than this in most requests, and are not counted then; as kKeptCapacity.
constexpr std::size_t kFewHeaderBytes = 4 << 10;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// What parsed headers take: the strings' own places, and their text where it is not in there.
std::uint64_t bytes_of(const HttpHeaders& headers) {
  std::uint64_t bytes = headers.capacity() * sizeof(HttpHeaders::value_type);
  for (const auto& [name, value] : headers) bytes += name.size() + value.size();
  return bytes > kFewHeaderBytes ? bytes : 0;
}

}  // namespace

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
  IdleList::remove(*this);
  core_.budget.change(std::exchange(counted_bytes_, 0), 0);
  if (exchange_) exchange_->connection = nullptr;
  exchange_.reset();
  if (handle_) core_.parts.remove(*handle_);
  transport_->end();
  transport_.reset();
  socket_.reset();
  core_.forget(place);
}

// Bytes that are here already are a request that has begun, so the connection is not idle.
bool HttpConnection::close_if_idle() {
  const bool is_idle = state_ == State::Handshake || state_ == State::Idle;
  if (!is_idle || unread_size() > 0) return false;
  close();
  return true;
}

void HttpConnection::enter_at(State state, TimePoint deadline) {
  state_ = state;
  if (state == State::Idle || state == State::Handshake) {
    core_.idle.add(*this);
  } else {
    IdleList::remove(*this);
  }
  core_.set_deadline(place, deadline);
}

void HttpConnection::enter(State state, Duration limit) { enter_at(state, core_.now() + limit); }
void HttpConnection::enter(State state) { enter_at(state, TimePoint::max()); }

bool HttpConnection::is_reading_wanted() const {
  if (has_ended_) return false;
  if (state_ == State::Reading || state_ == State::Lingering) return true;
  // Later requests may wait in the client's system where there is no room for them here.
  const bool is_busy =
      state_ == State::Waiting || state_ == State::Streaming || state_ == State::Sending;
  return unread_size() < kUnreadMost && !(is_busy && core_.budget.is_full());
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
  tell_room();
  if (state_ == State::Closed) return;
  if (is_reading_wanted()) {
    on_readable();
  } else if ((events & kBroken) != 0) {
    on_end(true);
  } else if ((events & EPOLLRDHUP) != 0) {
    is_leaving_ = true;
    if (exchange_ && exchange_->gone) return tell_gone();
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
  if (exchange_ && (is_broken || exchange_->gone)) return tell_gone();
  const bool has_more =
      exchange_ || state_ == State::Sending || (state_ == State::Idle && unread_size() > 0);
  if (is_broken || !has_more) return close();
  update_interest();  // a client that has only ended its side gets its answers
}

// The caller holds this connection.
void HttpConnection::tell_gone() {
  const auto held = shared_from_this();
  const auto exchange = exchange_;
  close();
  if (!exchange) return;
  const bool was_answered = exchange->is_answered.exchange(true);
  if (was_answered && !std::exchange(exchange->is_streaming, false)) return;
  ++core_.counters.clients_gone;
  const auto call = std::exchange(exchange->gone, nullptr);
  if (call) call();
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
  if (state_ == State::Reading) after_reading();
  if (left == 0 && state_ == State::Idle && unread_size() > 0) resume_later();
  if (exchange_ || state_ == State::Sending) {
    if (unread_size() > 0) account();
    update_interest();
  }
}

// What has come of the body earns time, and has to find room.
void HttpConnection::after_reading() {
  const auto size = reader_->is_head_done() ? reader_->request().body.size() : 0;
  const auto more = size - std::exchange(body_seen_, size);
  if (more > 0) progress_at_ = core_.now();
  core_.extend_deadline(place, kSecond * static_cast<long>(more) / kBytesPerSecondLeast,
                        core_.now() + core_.options.request_limit);
  if (!hold(0, 0)) refuse_for_memory();
}

// False when the request wants more bytes than there are.
bool HttpConnection::feed_reader(std::string_view& input) {
  if (!reader_ && !begin_request(input)) return false;
  if (!is_judged_) {
    input.remove_prefix(reader_->put_head(input));
    if (reader_->is_head_done() && !reader_->refusal()) {
      is_judged_ = true;
      if (!judge_head(input)) return true;
    }
  }
  if (is_judged_ && !reader_->refusal()) input.remove_prefix(reader_->put(input));
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

// False for the empty line that some clients send behind a body.
bool HttpConnection::begin_request(std::string_view& input) {
  if (input == "\r\n") {
    input = {};
    return false;
  }
  if (core_.options.on_first_bytes) core_.options.on_first_bytes(input);
  reader_.emplace(core_.options.limits);
  is_judged_ = false;
  is_late_ = core_.is_closing;
  has_body_ = true;
  body_seen_ = 0;
  began_ = progress_at_ = core_.now();
  enter(State::Reading, core_.options.request_limit);
  return true;
}

// False when the request is answered by its head alone.
bool HttpConnection::judge_head(std::string_view& input) {
  auto& request = reader_->request();
  head_bytes_ = bytes_of(request.headers);
  request.peer = peer_;
  request.is_loopback_peer = is_loopback_peer_;
  request.client_name = transport_->peer_name();
  keeps_alive_ = request.wants_keep_alive && !core_.is_closing;
  has_body_ = request.method != "HEAD";
  is_http10_ = request.is_http10;
  if (core_.options.on_head) {
    auto verdict = core_.options.on_head(request);
    if (verdict.refusal) {
      answer_head(*std::move(verdict.refusal), input);
      return false;
    }
    if (verdict.body_bytes) reader_->set_body_limit(*verdict.body_bytes);
  }
  const auto announced = reader_->announced_bytes().value_or(0);
  if (announced == 0 ||
      core_.may_hold(*this, counted_bytes_, counted_bytes_ + kHeldForABody * announced)) {
    return true;
  }
  input = {};
  refuse_for_memory();
  return false;
}

// A body that is here already is passed over, so that the connection stays of use; else it is
// closed, because where the next request begins could only be found by reading on.
void HttpConnection::answer_head(HttpResponse response, std::string_view& input) {
  const auto announced = reader_->announced_bytes();
  const bool is_here = announced && *announced <= input.size();
  reader_.reset();
  if (is_here) {
    input.remove_prefix(*announced);
  } else {
    input = {};
    keeps_alive_ = false;
    was_refused_ = true;
  }
  ++core_.counters.requests;
  keep(input);
  send(std::move(response));
  input = std::string_view(unread_).substr(unread_at_);
}

void HttpConnection::resume() {
  if (state_ != State::Idle) return;
  feed({});
  const bool is_over = has_ended_ && (state_ == State::Reading || unread_size() == 0);
  if (is_over && (state_ == State::Idle || state_ == State::Reading)) close();
  update_interest();
}

void HttpConnection::hand_over() {
  const auto body_bytes = reader_->request().body.size();
  if (!hold((kHeldForABody - 1) * body_bytes, 0)) return refuse_for_memory();
  auto request = reader_->take();
  reader_.reset();
  request_bytes_ = kHeldForABody * body_bytes;
  account();
  keeps_alive_ = keeps_alive_ && !core_.is_closing;
  enter(State::Waiting);  // how long an answer may take is the handler's matter
  ++core_.counters.requests;
  exchange_ = std::make_shared<Exchange>(core_.loop, *this);
  judged_ = request.judged;
  core_.handler(std::move(request), HttpRespond(exchange_));
  // Parts that came from within the handler are still here.
  if (state_ == State::Streaming || state_ == State::Sending) return flush();
  if (!early_answer_ || state_ != State::Waiting) return;
  send(*std::move(early_answer_));
  early_answer_.reset();
}

void HttpConnection::deliver(HttpResponse&& response) {
  if (state_ != State::Waiting) return;
  if (is_feeding_) {
    fit(early_answer_.emplace(std::move(response)));
    return;
  }
  const auto held = shared_from_this();
  send(std::move(response));
  update_interest();
}

}  // namespace muster

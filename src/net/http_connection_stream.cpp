// Answers in parts: what their writer gives is framed, sent at once where the client takes it, and
// else kept; a writer is told to wait and when there is room again. Whoever writes may not be
// called back from within its own calls, so what ends a connection there is posted.

#include <memory>
#include <string>
#include <utility>

#include "net/http_connection_exchange.h"

namespace muster {

// While its request is being handed over nothing is sent, so that nothing happens to the connection
// from within the handler.
bool HttpConnection::begin_stream(HttpResponse&& head) {
  if (state_ != State::Waiting) return false;
  const auto held = shared_from_this();
  judged_.reset();
  const bool is_chunked = !is_http10_;
  keeps_alive_ = keeps_alive_ && is_chunked;
  append_response_head(head_, head, is_chunked ? HttpFraming::Chunks : HttpFraming::Close,
                       keeps_alive_, core_.date());
  began_ = progress_at_ = core_.now();
  unacknowledged_ = 0;
  request_bytes_ = 0;  // a stream outlives by far what its handler made of the body
  account();
  is_full_ = false;
  enter(State::Streaming, core_.options.write_stall_limit / kLooks);
  if (!has_body_) {
    end_stream();
    return false;
  }
  append_part(head.body);
  if (!is_feeding_) flush();
  update_interest();
  return true;
}

void HttpConnection::append_part(std::string_view bytes) {
  if (bytes.empty()) return;  // a chunk of none would be the last one
  auto& out = is_being_sent_ ? waiting_ : body_;
  if (is_http10_) {
    out.append(bytes);
  } else {
    append_chunk(out, bytes);
  }
}

bool HttpConnection::write_part(std::string_view bytes) {
  if (is_broken_) return true;  // it is about to be told that nobody listens any more
  const auto held = shared_from_this();
  if (unsent_size() == 0) {
    progress_at_ = core_.now();
    enter(State::Streaming, core_.options.write_stall_limit / kLooks);
  }
  append_part(bytes);
  if (!hold(request_bytes_, large(body_) + large(waiting_))) {
    ++core_.counters.memory_evictions;
    reset_at_end();
    break_off();
    return true;
  }
  if (!is_feeding_) flush();
  update_interest();
  is_full_ = !is_broken_ && unsent_size() > kStreamBytesMost;
  return !is_full_;
}

void HttpConnection::end_stream() {
  const auto held = shared_from_this();
  const auto exchange = std::exchange(exchange_, nullptr);
  exchange->connection = nullptr;
  exchange->is_streaming = false;
  exchange->gone = exchange->room = nullptr;
  if (is_broken_) return;  // what was posted closes it
  if (!is_http10_ && has_body_) (is_being_sent_ ? waiting_ : body_).append(kLastChunk);
  request_bytes_ = head_bytes_ = 0;
  is_full_ = false;
  account();
  enter(State::Sending, core_.options.write_stall_limit / kLooks);
  if (!is_feeding_) flush();
  update_interest();
}

// From on_ready alone, so that a writer is not called from within its own calls.
void HttpConnection::tell_room() {
  if (!is_full_ || state_ != State::Streaming || unsent_size() > kStreamBytesMost / 2) return;
  is_full_ = false;
  const auto call = exchange_->room;
  if (call) call();
}

// The caller holds this connection.
void HttpConnection::cut_off() {
  reset_at_end();
  if (state_ == State::Streaming) return tell_gone();
  close();
}

// Its client takes nothing more. A writer of parts hears of it, but not from within its call.
void HttpConnection::break_off() {
  if (state_ != State::Streaming) return close();
  is_broken_ = true;
  is_full_ = needs_write_ = is_being_sent_ = false;
  sent_ = 0;
  for (auto* text : {&head_, &body_, &waiting_}) std::string().swap(*text);
  request_bytes_ = head_bytes_ = answer_bytes_ = 0;
  account();
  core_.loop.post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->tell_gone();
  });
}

}  // namespace muster

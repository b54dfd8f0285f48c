#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "net/http_connection.h"
#include "net/http_server_core.h"

namespace muster {

/// The way back to a connection. It outlives its connection if the answer does: then `connection`
/// is nullptr.
///
/// Threads: `respond` is thread-safe, all else the loop's.
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
    if (connection == nullptr || (is_answered && !is_streaming)) return;
    gone = std::move(call);
    if (!connection->has_ended_ && !connection->is_leaving_) return;
    loop_.post([self = shared_from_this()] {
      if (self->connection != nullptr) self->connection->tell_gone();
    });
  }

  bool begin_stream(HttpResponse head, std::function<void()> on_room) override {
    if (is_answered.exchange(true) || connection == nullptr) return false;
    room = std::move(on_room);
    is_streaming = true;
    return connection->begin_stream(std::move(head));
  }

  bool write(std::string_view bytes) override {
    return connection == nullptr || !is_streaming || connection->write_part(bytes);
  }

  void end_stream() override {
    if (connection != nullptr && is_streaming) connection->end_stream();
  }

  bool hold(std::uint64_t bytes) override {
    if (connection == nullptr || is_answered) return true;
    if (connection->hold(connection->request_bytes_ + bytes, 0)) return true;
    ++connection->core_.counters.memory_refusals;
    return false;
  }

  HttpConnection* connection;  // on the loop's thread
  std::function<void()> gone;  // on the loop's thread
  std::function<void()> room;  // on the loop's thread
  bool is_streaming = false;   // on the loop's thread; it has not ended
  std::atomic<bool> is_answered = false;

 private:
  void pass_on(HttpResponse&& response) {
    gone = nullptr;
    if (connection != nullptr) connection->deliver(std::move(response));
  }

  EventLoop& loop_;
};

}  // namespace muster

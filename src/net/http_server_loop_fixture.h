#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "net/connect_fixture.h"
#include "net/http_server.h"

namespace muster {

/// A server on a loop that the test itself runs: nothing happens but what the test lets happen.
class HttpServerLoop : public testing::Test {
 protected:
  void start(HttpHandler handler, HttpServerOptions options = {}) {
    options.listen = {"127.0.0.1", 0};
    auto started = HttpServer::start(options, loop_, std::move(handler));
    ASSERT_TRUE(started) << started.error().message;
    server_ = std::move(*started);
  }

  // Keeps the answers back for the test to give.
  void start_patient() { start_patient_with({}); }
  void start_patient_with(HttpServerOptions options) {
    start(
        [this](HttpRequest request, HttpRespond respond) {
          requests_.push_back(std::move(request));
          responds_.push_back(std::move(respond));
        },
        std::move(options));
  }

  UniqueFd connect() const { return connect_to(server_->port()); }

  // Runs the loop until `is_so`; a failing test hangs here and is ended by its runner.
  void run_until(const std::function<bool()>& is_so) {
    std::function<void()> look = [&] {
      if (is_so()) return loop_.stop();
      loop_.post(look);
    };
    loop_.post(look);
    loop_.run();
  }

  static void say(const UniqueFd& socket, std::string_view text) {
    EXPECT_EQ(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }

  // Runs the loop until `text` ends with `mark`, or the server has closed.
  std::string hear(const UniqueFd& socket, std::string_view mark) {
    std::string text;
    run_until([&] {
      std::array<char, 4096> chunk{};
      const auto size = ::recv(socket.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
      const bool is_reset = size < 0 && errno != EAGAIN && errno != EINTR;
      if (size == 0) text += "<closed>";
      if (is_reset) text += "<reset>";
      if (size > 0) text.append(chunk.data(), static_cast<std::size_t>(size));
      return size == 0 || is_reset || (!mark.empty() && text.ends_with(mark));
    });
    return text;
  }

  EventLoop loop_;
  std::vector<HttpRequest> requests_;
  std::vector<HttpRespond> responds_;
  std::unique_ptr<HttpServer> server_;
};

inline constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

}  // namespace muster

#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/http_client_connection.h"

namespace muster {

/// Sends its requests one after the other and stops the loop at the end of the last, or on failure.
class HttpCaller final : public HttpAnswerSink {
 public:
  HttpCaller(EventLoop& loop, const HttpClientTarget& target, std::vector<std::string> requests)
      : loop_(loop), requests_(std::move(requests)) {
    auto opened = HttpClientConnection::open(loop, target, *this);
    EXPECT_TRUE(opened) << opened.error().message;
    connection_ = std::move(*opened);
    if (!requests_.empty()) connection_->send(requests_[0]);
  }

  void on_connected() override { said += "connected "; }
  void on_sent() override { said += "sent "; }
  void on_head(int status, const HttpHeaders& headers) override {
    said += std::to_string(status) + " ";
    type = find_header(headers, "content-type").value_or("none");
  }
  void on_body(std::string_view bytes) override { body += bytes; }
  void on_end(bool keeps_alive) override {
    said += keeps_alive ? "end " : "last ";
    if (++at_ < requests_.size() && keeps_alive) return connection_->send(requests_[at_]);
    connection_.reset();
    loop_.stop();
  }
  void on_failed(Error error) override {
    failure = std::move(error);
    connection_.reset();
    loop_.stop();
  }

  std::string said;
  std::string body;
  std::string type;
  std::optional<Error> failure;

 private:
  EventLoop& loop_;
  std::vector<std::string> requests_;
  std::size_t at_ = 0;
  std::unique_ptr<HttpClientConnection> connection_;
};

}  // namespace muster

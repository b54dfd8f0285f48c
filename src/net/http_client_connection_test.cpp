#include "net/http_client_connection.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "net/http_server.h"
#include "net/test_certificates.h"

namespace muster {
namespace {

// Sends its requests one after the other and stops the loop at the end of the last, or on failure.
class Caller final : public HttpAnswerSink {
 public:
  Caller(EventLoop& loop, const HttpClientTarget& target, std::vector<std::string> requests)
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

class HttpClientConnectionTest : public ::testing::Test {
 protected:
  void start(HttpHandler handler, const HttpServerOptions& options = {}) {
    auto all = options;
    all.listen = {"127.0.0.1", 0};
    auto server = HttpServer::start(all, std::move(handler));
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }

  HttpClientTarget target(const std::string& scheme = "http", const TlsClientOptions& tls = {}) {
    auto found = HttpClientTarget::find(
        scheme + "://127.0.0.1:" + std::to_string(server_->port()) + "/base", tls);
    EXPECT_TRUE(found) << found.error().message;
    return std::move(*found);
  }

  static std::string post(const HttpClientTarget& target, const std::string& body) {
    return http_request_head(target.url, "POST", "/echo", {{"Content-Type", "text/x"}},
                             body.size()) +
           body;
  }

  EventLoop loop_;
  std::unique_ptr<HttpServer> server_;
};

const HttpHandler kEcho = [](HttpRequest request, HttpRespond respond) {
  respond({.content_type = "text/x", .body = request.path + " " + request.body});
};

TEST_F(HttpClientConnectionTest, SendsRequestsOneAfterTheOther) {
  start(kEcho);
  const auto to = target();
  Caller caller(loop_, to, {post(to, "one"), post(to, "two")});
  loop_.run();
  EXPECT_EQ(caller.said, "connected sent 200 end sent 200 end ");
  EXPECT_EQ(caller.body, "/base/echo one/base/echo two");
  EXPECT_EQ(caller.type, "text/x");
  EXPECT_FALSE(caller.failure);
}

TEST_F(HttpClientConnectionTest, CarriesWhatDoesNotFitIntoTheSystemsBuffers) {
  start(kEcho);
  const auto to = target();
  const std::string large(12 << 20, 'x');
  Caller caller(loop_, to, {post(to, large)});
  loop_.run();
  EXPECT_EQ(caller.said, "connected sent 200 end ");
  EXPECT_EQ(caller.body, "/base/echo " + large);
}

TEST_F(HttpClientConnectionTest, ReportsWhenTheServerEndsTheConnection) {
  start([](const HttpRequest&, const HttpRespond& respond) { respond({.body = "bye"}); });
  const auto to = target();
  const auto request = http_request_head(to.url, "GET", "/", {{"Connection", "close"}}, 0);
  Caller caller(loop_, to, {request});
  loop_.run();
  EXPECT_EQ(caller.said, "connected sent 200 last ");
}

TEST_F(HttpClientConnectionTest, FailsWhereNobodyListens) {
  start(kEcho);
  const auto to = target();
  server_.reset();
  Caller caller(loop_, to, {post(to, "one")});
  loop_.run();
  ASSERT_TRUE(caller.failure);
  EXPECT_EQ(caller.failure->kind, ErrorKind::Unavailable);
  EXPECT_EQ(caller.failure->message, to.url.address() + ": cannot connect: Connection refused");
  EXPECT_EQ(caller.said, "");
}

TEST_F(HttpClientConnectionTest, SpeaksTls) {
  const testing::TestFolder folder;
  const auto authority = testing::make_identity({.name = "authority"});
  const auto identity =
      testing::make_identity({.name = "server", .alternatives = "IP:127.0.0.1"}, &authority);
  HttpServerOptions options;
  options.tls = TlsOptions{folder.write("server.pem", identity.certificate),
                           folder.write("server.key", identity.key),
                           {}};
  start(kEcho, options);
  const auto to = target("https", {.ca_file = folder.write("ca.pem", authority.certificate)});
  const std::string large(3 << 20, 'y');
  Caller caller(loop_, to, {post(to, "one"), post(to, large)});
  loop_.run();
  EXPECT_EQ(caller.said, "connected sent 200 end sent 200 end ");
  EXPECT_EQ(caller.body, "/base/echo one/base/echo " + large);
}

// A name that no resolver asks the network for.
TEST(HttpClientTarget, NamesAHostThatCannotBeFound) {
  const auto found = HttpClientTarget::find("http://a..b:80");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::NotFound);
  EXPECT_TRUE(found.error().message.starts_with("a..b:80: the host cannot be found"));
}

}  // namespace
}  // namespace muster

#include "net/http_client_connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "net/http_caller_fixture.h"
#include "net/http_server.h"

namespace muster {
namespace {

class HttpClientConnectionTest : public ::testing::Test {
 protected:
  void start(HttpHandler handler) {
    HttpServerOptions options;
    options.listen = {"127.0.0.1", 0};
    auto server = HttpServer::start(options, std::move(handler));
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }

  HttpClientTarget target() {
    auto found =
        HttpClientTarget::find("http://127.0.0.1:" + std::to_string(server_->port()) + "/base");
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
  HttpCaller caller(loop_, to, {post(to, "one"), post(to, "two")});
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
  HttpCaller caller(loop_, to, {post(to, large)});
  loop_.run();
  EXPECT_EQ(caller.said, "connected sent 200 end ");
  EXPECT_EQ(caller.body, "/base/echo " + large);
}

TEST_F(HttpClientConnectionTest, ReportsWhenTheServerEndsTheConnection) {
  start([](const HttpRequest&, const HttpRespond& respond) { respond({.body = "bye"}); });
  const auto to = target();
  const auto request = http_request_head(to.url, "GET", "/", {{"Connection", "close"}}, 0);
  HttpCaller caller(loop_, to, {request});
  loop_.run();
  EXPECT_EQ(caller.said, "connected sent 200 last ");
}

TEST_F(HttpClientConnectionTest, FailsWhereNobodyListens) {
  start(kEcho);
  const auto to = target();
  server_.reset();
  HttpCaller caller(loop_, to, {post(to, "one")});
  loop_.run();
  ASSERT_TRUE(caller.failure);
  EXPECT_EQ(caller.failure->kind, ErrorKind::Unavailable);
  EXPECT_EQ(caller.failure->message, to.url.address() + ": cannot connect: Connection refused");
  EXPECT_EQ(caller.said, "");
}

// The other port belongs to a socket on which nobody listens.
TEST_F(HttpClientConnectionTest, FindsTheAddressAtWhichSomebodyListens) {
  start(kEcho);
  const auto there = target().address;
  const UniqueFd bound(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto any = SocketAddress::parse("127.0.0.1");
  ASSERT_TRUE(any);
  ASSERT_EQ(::bind(bound.get(), any->get(), any->size()), 0);
  const auto silent = SocketAddress::of_socket(bound.get());
  const auto port_of_first = [](const std::vector<SocketAddress>& addresses) {
    return HttpClientTarget::first_that_listens(addresses, std::chrono::seconds(20)).port();
  };
  EXPECT_EQ(port_of_first({silent, there}), there.port());
  EXPECT_EQ(port_of_first({there, silent}), there.port());
  EXPECT_EQ(port_of_first({silent, silent}), silent.port());
  EXPECT_EQ(port_of_first({silent}), silent.port());
}

TEST(HttpClientTarget, IsNoUnixSocket) {
  const auto socket = HttpClientTarget::find("unix:/run/m.sock");
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().kind, ErrorKind::Unsupported);
  EXPECT_EQ(
      socket.error().message,
      "unix:/run/m.sock: many connections at once go to a port, not to a Unix socket: name the "
      "server's http://HOST:PORT");
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

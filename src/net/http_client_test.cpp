#include "net/http_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "net/http_server.h"

namespace muster {
namespace {

TEST(ParseHttpUrl, TakesHostsPortsAndPaths) {
  struct Case {
    const char* text;
    bool is_tls;
    const char* host;
    std::uint16_t port;
    const char* path;
  };
  for (const auto& [text, is_tls, host, port, path] :
       {Case{"http://127.0.0.1:8000", false, "127.0.0.1", 8000, ""},
        Case{"http://127.0.0.1:8000/", false, "127.0.0.1", 8000, ""},
        Case{"https://name", true, "name", 443, ""},
        Case{"http://name/a/b/", false, "name", 80, "/a/b"},
        Case{"https://[::1]:8443/x", true, "::1", 8443, "/x"},
        Case{"http://[::1]", false, "::1", 80, ""}}) {
    SCOPED_TRACE(text);
    const auto url = parse_http_url(text);
    ASSERT_TRUE(url) << url.error().message;
    EXPECT_EQ(url->is_tls, is_tls);
    EXPECT_EQ(url->host, host);
    EXPECT_EQ(url->port, port);
    EXPECT_EQ(url->path, path);
  }
  EXPECT_EQ(parse_http_url("http://[::1]:80")->address(), "[::1]:80");
}

TEST(ParseHttpUrl, RefusesWhatIsNone) {
  for (const char* text :
       {"", "name:80", "ftp://name", "http://", "http://:80", "http://name:", "http://name:x",
        "http://name:0", "http://name:65536", "http://name:80x", "http://[::1", "http://[::1]x",
        "http://a b", "http://user@name", "http://name/a?b", "http://name\r\nX: y"}) {
    SCOPED_TRACE(text);
    const auto url = parse_http_url(text);
    ASSERT_FALSE(url);
    EXPECT_EQ(url.error().kind, ErrorKind::InvalidArgument);
  }
}

// A server and a client of it.
class HttpClientTest : public ::testing::Test {
 protected:
  void start(HttpHandler handler, HttpServerOptions options = {}) {
    options.listen = {"127.0.0.1", 0};
    auto server = HttpServer::start(options, std::move(handler));
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }

  std::unique_ptr<HttpClient> client(const HttpClientOptions& options = {}) {
    auto made =
        HttpClient::open("http://127.0.0.1:" + std::to_string(server_->port()) + "/base", options);
    EXPECT_TRUE(made);
    return std::move(*made);
  }

  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpClientTest, CarriesEverythingThereAndBackOverOneConnection) {
  std::string first_peer;
  std::atomic<int> peers = 0;
  start([&](const HttpRequest& request, const HttpRespond& respond) {
    if (request.peer != first_peer) ++peers;
    first_peer = request.peer;
    respond({.status = 418,
             .body = request.method + " " + request.path + "?" + request.query + " " +
                     std::string(request.header("x-key").value_or("none")) + " " + request.body,
             .headers = {{"X-Answer", "yes"}}});
  });
  const auto asking = client();
  const std::string long_body(3 << 20, 'b');
  for (const auto& body : {std::string(), long_body, std::string("short")}) {
    const auto answer = asking->call("POST", "/a?b=c", {{"X-Key", "k"}}, body);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->status, 418);
    EXPECT_EQ(answer->header("x-answer"), "yes");
    EXPECT_TRUE(answer->body == "POST /base/a?b=c k " + body);
  }
  const auto head = asking->call("HEAD", "/");
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(head->body, "");
  EXPECT_EQ(peers, 1);
}

TEST_F(HttpClientTest, ACallThatWaitsIsCancelledFromAnotherThread) {
  const UniqueFd cancel(::eventfd(0, EFD_CLOEXEC));
  std::vector<HttpRespond> kept;
  // The request is there, so the client waits for an answer, or is about to.
  start([&](const HttpRequest&, const HttpRespond& respond) {
    kept.push_back(respond);
    ::eventfd_write(cancel.get(), 1);
  });
  const auto answer = client({.cancel_fd = cancel.get()})->call("GET", "/");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::Cancelled);
  server_.reset();
}

TEST_F(HttpClientTest, ConnectsAgainWhenTheServerHasClosed) {
  // "Connection: close" comes with the answer to a request that wants it.
  start([](const HttpRequest&, const HttpRespond& respond) { respond({.body = "x"}); });
  const auto asking = client();
  EXPECT_TRUE(asking->call("GET", "/", {{"Connection", "close"}}));
  EXPECT_TRUE(asking->call("GET", "/"));
}

TEST_F(HttpClientTest, TellsRefusalsThatComeBeforeTheRequestIsWhole) {
  start([](const HttpRequest&, const HttpRespond& respond) { respond({}); },
        {.limits = {.body_bytes = 1000}});
  const auto answer = client()->call("POST", "/", {}, std::string(8 << 20, 'x'));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 413);
}

TEST_F(HttpClientTest, SaysWhyThereIsNoAnswer) {
  start([](const HttpRequest& request, const HttpRespond& respond) {
    static std::vector<HttpRespond> never;
    if (request.path == "/base/never") return never.push_back(respond);
    respond({.body = std::string(2000, 'x')});
  });
  const auto late = client({.answer_limit = std::chrono::milliseconds(30)})->call("GET", "/never");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::DeadlineExceeded);
  const auto large = client({.body_bytes = 1000})->call("GET", "/");
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().kind, ErrorKind::ResourceExhausted);
  const auto asking = client();
  const auto port = std::to_string(server_->port());
  server_.reset();
  const auto refused = asking->call("GET", "/");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(refused.error().message, "127.0.0.1:" + port + ": cannot connect: Connection refused");
}

// What the client makes of an answer that is not our server's.
Result<HttpAnswer> answer_of(std::string_view bytes) {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  std::thread server([&] {
    const UniqueFd socket(::accept(listener.get(), nullptr, nullptr));
    std::array<char, 4096> request{};
    EXPECT_GT(::recv(socket.get(), request.data(), request.size(), 0), 0);
    EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  });
  auto client = HttpClient::open("http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
  auto answer = (*client)->call("GET", "/");
  server.join();
  return answer;
}

TEST_F(HttpClientTest, ReadsWhatOtherServersSend) {
  const auto chunked = answer_of(
      "HTTP/1.1 100 Continue\r\n\r\n"
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  ASSERT_TRUE(chunked) << chunked.error().message;
  EXPECT_EQ(chunked->body, "abcde");
  const auto to_the_end = answer_of("HTTP/1.0 200 OK\r\n\r\nall of it");
  ASSERT_TRUE(to_the_end) << to_the_end.error().message;
  EXPECT_EQ(to_the_end->body, "all of it");
  const auto cut = answer_of("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().kind, ErrorKind::Unavailable);
  // All of it is read before it is refused, so that the server can send it.
  const auto endless = answer_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=" +
                                 std::string(70'000, 'x'));
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().kind, ErrorKind::Corrupt);
  const auto nonsense = answer_of("SSH-2.0-OpenSSH_9.2\r\n\r\n");
  ASSERT_FALSE(nonsense);
  EXPECT_EQ(nonsense.error().kind, ErrorKind::Corrupt);
}

}  // namespace
}  // namespace muster

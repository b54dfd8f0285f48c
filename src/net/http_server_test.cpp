#include "net/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "net/connect_fixture.h"

namespace muster {
namespace {

constexpr int kWaitMs = 20'000;  // only ever waited for when a test fails

void say(const UniqueFd& socket, std::string_view text) {
  EXPECT_EQ(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

// Reads until `mark` has come `count` times or the server closes.
std::string hear(const UniqueFd& socket, std::string_view mark, std::size_t count = 1) {
  std::string text;
  const auto marks = [&] {
    std::size_t found = 0;
    for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) ++found;
    return found;
  };
  while (mark.empty() || marks() < count) {
    pollfd waiting{socket.get(), POLLIN, 0};
    if (::poll(&waiting, 1, kWaitMs) <= 0) return text + "<nothing came>";
    std::array<char, 4096> chunk{};
    const auto size = ::recv(socket.get(), chunk.data(), chunk.size(), 0);
    if (size <= 0) return text + "<closed>";
    text.append(chunk.data(), static_cast<std::size_t>(size));
  }
  return text;
}

std::unique_ptr<HttpServer> serve(HttpHandler handler, HttpServerOptions options = {}) {
  options.listen = {"127.0.0.1", 0};
  auto server = HttpServer::start(options, std::move(handler));
  EXPECT_TRUE(server) << (server ? "" : server.error().message);
  return std::move(*server);
}

void echo(HttpRequest request, const HttpRespond& respond) {
  respond({.body = request.method + " " + request.path + " " + request.body + "#"});
}

TEST(HttpServer, AnswersManyRequestsOfAConnectionInOrder) {
  const auto server = serve(echo);
  const auto client = connect_to(server->port());
  say(client, "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n");
  say(client, "POST /c HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
  const auto text = hear(client, "#", 3);
  const auto a = text.find("GET /a #");
  const auto b = text.find("GET /b #");
  const auto c = text.find("POST /c hi#");
  EXPECT_LT(a, b);
  EXPECT_LT(b, c);
  EXPECT_NE(c, std::string::npos) << text;
  EXPECT_TRUE(text.starts_with("HTTP/1.1 200 OK\r\nDate: ")) << text;
  EXPECT_NE(text.find("\r\nContent-Length: 8\r\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\r\nContent-Type: text/plain; charset=utf-8\r\n"), std::string::npos);
}

TEST(HttpServer, ClosesAfterAnOldClientAndOneThatAsksForIt) {
  const auto server = serve(echo);
  for (const char* request :
       {"GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"}) {
    const auto client = connect_to(server->port());
    say(client, request);
    const auto text = hear(client, "");
    EXPECT_NE(text.find("\r\nConnection: close\r\n"), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with("GET / #<closed>")) << text;
  }
}

TEST(HttpServer, SendsTheLengthButNoBodyForHead) {
  const auto server = serve(echo);
  const auto client = connect_to(server->port());
  say(client, "HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const auto text = hear(client, "");
  EXPECT_NE(text.find("Content-Length: 8\r\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\r\n\r\n<closed>")) << text;
}

TEST(HttpServer, TakesAnAnswerFromAnotherThread) {
  std::thread other;
  {
    const auto server = serve([&](HttpRequest, HttpRespond respond) {
      other = std::thread([respond] { respond({.status = 404, .body = "not here#"}); });
    });
    const auto client = connect_to(server->port());
    say(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    const auto text = hear(client, "#");
    EXPECT_TRUE(text.starts_with("HTTP/1.1 404 Not Found\r\n")) << text;
    other.join();
  }
}

TEST(HttpServer, RefusesWhatCannotBeReadAndCloses) {
  const auto server = serve(echo);
  const auto client = connect_to(server->port());
  say(client, "nonsense\r\n\r\n");
  const auto text = hear(client, "");
  EXPECT_TRUE(text.starts_with("HTTP/1.1 400 Bad Request\r\n")) << text;
  EXPECT_TRUE(text.ends_with("<closed>")) << text;
}

TEST(HttpServer, ServesOthersWhileManyAreIdle) {
  const auto server = serve(echo);
  std::vector<UniqueFd> idle;
  for (int i = 0; i < 200; ++i) idle.push_back(connect_to(server->port()));
  const auto client = connect_to(server->port());
  say(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(hear(client, "#").find("GET / #"), std::string::npos);
}

TEST(HttpServer, TellsOneTooMany) {
  const auto server = serve(echo, {.connections_most = 1});
  const auto first = connect_to(server->port());
  say(first, "GET / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n");
  hear(first, "100 Continue\r\n\r\n");  // it is in, and its request has begun
  const auto second = connect_to(server->port());
  const auto text = hear(second, "");
  EXPECT_TRUE(text.starts_with("HTTP/1.1 503 Service Unavailable\r\n")) << text;
  EXPECT_NE(text.find("\r\nRetry-After: 1\r\n"), std::string::npos) << text;
}

TEST(HttpServer, CutsOffAClientThatSendsTooSlowly) {
  const auto server = serve(echo, {.request_limit = std::chrono::milliseconds(50)});
  const auto client = connect_to(server->port());
  say(client, "GET / HT");
  const auto text = hear(client, "");
  EXPECT_TRUE(text.starts_with("HTTP/1.1 408 Request Timeout\r\n")) << text;
  EXPECT_TRUE(text.ends_with("<closed>")) << text;
}

TEST(HttpServer, CutsOffAReaderThatTakesNothing) {
  // More than the two socket buffers hold.
  const auto server =
      serve([](HttpRequest,
               const HttpRespond& respond) { respond({.body = std::string(64 << 20, 'x')}); },
            {.write_stall_limit = std::chrono::milliseconds(50)});
  const auto client = connect_to(server->port());
  say(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  // Reading begins only once the server has closed: the socket says so by an error or hang-up.
  pollfd gone{client.get(), POLLRDHUP, 0};
  ASSERT_EQ(::poll(&gone, 1, kWaitMs), 1);
  EXPECT_LT(hear(client, "").size(), 64U << 20);
}

TEST(HttpServer, AnswersALongPipelineWholeAndThenTheEndOfIt) {
  const auto server = serve(echo);
  const auto client = connect_to(server->port());
  constexpr int kCount = 10'000;  // several times what is kept of it at once
  std::thread writer([&] {
    std::string all;
    for (int i = 0; i < kCount; ++i) {
      all += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n";
    }
    for (std::size_t at = 0; at < all.size();) {
      const auto size = ::send(client.get(), all.data() + at, all.size() - at, MSG_NOSIGNAL);
      ASSERT_GT(size, 0);
      at += static_cast<std::size_t>(size);
    }
    ::shutdown(client.get(), SHUT_WR);
  });
  const auto text = hear(client, "");
  writer.join();
  std::size_t at = 0;
  for (int i = 0; i < kCount; ++i) {
    at = text.find("GET /" + std::to_string(i) + " #", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
  EXPECT_TRUE(text.ends_with("#<closed>"));
}

TEST(HttpServer, TellsWhoAsks) {
  const auto server = serve([](const HttpRequest& request, const HttpRespond& respond) {
    respond({.body = request.peer + (request.is_loopback_peer ? " here" : " elsewhere") +
                     request.client_name + "#"});
  });
  const auto client = connect_to(server->port());
  say(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  sockaddr_in own{};
  socklen_t size = sizeof own;
  ::getsockname(client.get(), reinterpret_cast<sockaddr*>(&own), &size);
  const auto expected = "127.0.0.1:" + std::to_string(ntohs(own.sin_port)) + " here#";
  EXPECT_NE(hear(client, "#").find("\r\n\r\n" + expected), std::string::npos);
}

TEST(HttpServer, GivesItsRefusalsTheServicesForm) {
  const auto server = serve(echo, {.dress_refusal = [](HttpResponse& response, const HttpRefused&) {
                              response.content_type = "application/json";
                              response.body = "{}";
                            }});
  const auto client = connect_to(server->port());
  say(client, "nonsense\r\n\r\n");
  const auto text = hear(client, "");
  EXPECT_TRUE(text.starts_with("HTTP/1.1 400 Bad Request\r\n")) << text;
  EXPECT_NE(text.find("Content-Type: application/json\r\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\r\n\r\n{}<closed>")) << text;
}

// Who gives an answer for which there is no room knows, before his call returns, of the refusal
// that is sent instead: while his request is being handed over, and later.
TEST(HttpServer, TellsOfARefusalThatIsSentInsteadOfAnAnswer) {
  const auto judged = std::make_shared<int>(7);
  std::vector<std::shared_ptr<void>> told;
  std::vector<HttpRespond> waiting;
  std::promise<void> is_waiting;
  const auto answer = [&](const HttpRespond& respond) {
    const auto before = told.size();
    respond({.body = std::string(1 << 20, 'x')});
    EXPECT_EQ(told.size(), before + 1);
  };
  HttpServerOptions options;
  options.memory_most = 256 << 10;
  options.on_head = [&](HttpRequest& head) {
    head.judged = judged;
    return HttpVerdict{};
  };
  options.dress_refusal = [&](HttpResponse&, const HttpRefused& refused) {
    told.push_back(refused.judged);
  };
  auto server = serve(
      [&](const HttpRequest& request, const HttpRespond& respond) {
        if (request.path == "/wait") {
          waiting.push_back(respond);
          return is_waiting.set_value();
        }
        for (const auto& earlier : waiting) answer(earlier);
        answer(respond);
      },
      options);
  const auto first = connect_to(server->port());
  say(first, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  is_waiting.get_future().wait();
  const auto second = connect_to(server->port());
  say(second, "GET /now HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(hear(first, "").starts_with("HTTP/1.1 503 "));
  EXPECT_TRUE(hear(second, "").starts_with("HTTP/1.1 503 "));
  server.reset();
  EXPECT_EQ(told, (std::vector<std::shared_ptr<void>>{judged, judged}));
}

TEST(HttpServer, SaysThatThePortIsInUse) {
  const auto server = serve(echo);
  HttpServerOptions options;
  options.listen = {"127.0.0.1", server->port()};
  const auto second = HttpServer::start(options, echo);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(second.error().message, "127.0.0.1:" + std::to_string(server->port()) +
                                        ": another program listens there: end it, or name "
                                        "another port with --listen");
  options.listen = {"no-address", 0};
  const auto third = HttpServer::start(options, echo);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().kind, ErrorKind::InvalidArgument);
}

}  // namespace
}  // namespace muster

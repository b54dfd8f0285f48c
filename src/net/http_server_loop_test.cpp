// The server on a loop that the test itself runs: nothing happens but what the test lets happen.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "net/http_server.h"

namespace muster {
namespace {

class HttpServerLoop : public testing::Test {
 protected:
  void start(HttpHandler handler, HttpServerOptions options = {}) {
    options.listen = {"127.0.0.1", 0};
    auto started = HttpServer::start(options, loop_, std::move(handler));
    ASSERT_TRUE(started) << started.error().message;
    server_ = std::move(*started);
  }

  // Keeps the answers back for the test to give.
  void start_patient() {
    start([this](HttpRequest request, HttpRespond respond) {
      requests_.push_back(std::move(request));
      responds_.push_back(std::move(respond));
    });
  }

  UniqueFd connect() {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return socket;
  }

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
      if (size == 0) text += "<closed>";
      if (size > 0) text.append(chunk.data(), static_cast<std::size_t>(size));
      return size == 0 || (!mark.empty() && text.ends_with(mark));
    });
    return text;
  }

  EventLoop loop_;
  std::vector<HttpRequest> requests_;
  std::vector<HttpRespond> responds_;
  std::unique_ptr<HttpServer> server_;
};

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

TEST_F(HttpServerLoop, CountsConnectionsAndRequests) {
  start([](const HttpRequest&, const HttpRespond& respond) { respond({.body = "#"}); });
  auto client = connect();
  say(client, kGet);
  hear(client, "#");
  EXPECT_EQ(server_->connection_count(), 1U);
  EXPECT_EQ(server_->counters().accepted, 1U);
  EXPECT_EQ(server_->counters().requests, 1U);
  client.reset();
  run_until([&] { return server_->connection_count() == 0; });
  EXPECT_EQ(server_->counters().clients_gone, 0U) << "it had its answer";
}

TEST_F(HttpServerLoop, TellsOfTheFirstBytesOfEachRequestOnce) {
  std::vector<std::string> begun;
  HttpServerOptions options;
  options.on_first_bytes = [&](std::string_view bytes) { begun.emplace_back(bytes); };
  start([](const HttpRequest&, const HttpRespond& respond) { respond({.body = "#"}); }, options);
  const auto client = connect();
  say(client, kGet.substr(0, 20));
  run_until([&] { return !begun.empty(); });
  EXPECT_EQ(server_->counters().requests, 0U) << "it is told before the request is whole";
  say(client, kGet.substr(20));
  hear(client, "#");
  EXPECT_EQ(begun, (std::vector<std::string>{std::string(kGet.substr(0, 20))}));
  say(client, std::string(kGet) + std::string(kGet));
  run_until([&] { return begun.size() == 3; });
  EXPECT_EQ(begun[2], kGet);
}

TEST_F(HttpServerLoop, TellsOnceWhenTheClientGoesBeforeItsAnswer) {
  start_patient();
  auto client = connect();
  say(client, kGet);
  run_until([&] { return requests_.size() == 1; });
  int calls = 0;
  responds_[0].on_client_gone([&] { ++calls; });
  client.reset();
  run_until([&] { return calls > 0; });
  EXPECT_EQ(server_->connection_count(), 0U);
  EXPECT_EQ(server_->counters().clients_gone, 1U);
  responds_[0]({.body = "too late"});
  run_until([] { return true; });
  EXPECT_EQ(calls, 1);
}

TEST_F(HttpServerLoop, TellsAResetAndTheEndBehindBytesThatWait) {
  start_patient();
  auto reset = connect();
  auto ended = connect();
  say(reset, kGet);
  run_until([&] { return requests_.size() == 1; });
  say(ended, kGet);
  run_until([&] { return requests_.size() == 2; });
  int calls = 0;
  for (const auto& respond : responds_) respond.on_client_gone([&] { ++calls; });
  const ::linger at_once{1, 0};
  ::setsockopt(reset.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  reset.reset();
  run_until([&] { return calls == 1; });
  // More than is kept: the server has stopped reading when the end comes.
  const std::string pipelined(80 << 10, 'G');
  std::size_t sent = 0;
  run_until([&] {
    const auto size = ::send(ended.get(), pipelined.data() + sent, pipelined.size() - sent,
                             MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size > 0) sent += static_cast<std::size_t>(size);
    return sent == pipelined.size();
  });
  ::shutdown(ended.get(), SHUT_WR);
  run_until([&] { return calls == 2; });
  EXPECT_EQ(server_->connection_count(), 0U);
}

TEST_F(HttpServerLoop, TellsNothingOnceTheAnswerIsGiven) {
  start_patient();
  auto client = connect();
  say(client, kGet);
  run_until([&] { return requests_.size() == 1; });
  responds_[0].on_client_gone([] { FAIL() << "the answer was given"; });
  std::thread other([&] { responds_[0]({.body = "#"}); });
  other.join();  // given, and not yet passed on to the loop
  client.reset();
  run_until([&] { return server_->connection_count() == 0; });
}

TEST_F(HttpServerLoop, AnswersAClientThatHasOnlyEndedItsSide) {
  start_patient();
  const auto client = connect();
  say(client, kGet);
  ::shutdown(client.get(), SHUT_WR);
  run_until([&] { return requests_.size() == 1; });
  run_until([] { return true; });  // the end has been seen
  responds_[0]({.body = "#"});
  responds_[0]({.body = "twice"});
  const auto text = hear(client, "");
  EXPECT_TRUE(text.ends_with("\r\n\r\n#<closed>")) << text;
}

TEST_F(HttpServerLoop, GivesTheNextRequestOfAPipelineNotFromWithinTheAnswer) {
  start_patient();
  const auto client = connect();
  say(client, std::string(kGet) + "GET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
  run_until([&] { return requests_.size() == 1; });
  run_until([] { return true; });
  EXPECT_EQ(requests_.size(), 1U) << "one at a time";
  loop_.post([&] {
    responds_[0]({.body = "first#"});
    EXPECT_EQ(requests_.size(), 1U);
  });
  run_until([&] { return requests_.size() == 2; });
  EXPECT_EQ(requests_[1].path, "/2");
  responds_[1]({.body = "second#"});
  EXPECT_NE(hear(client, "second#").find("first#"), std::string::npos);
}

TEST_F(HttpServerLoop, SendsALongAnswerPieceByPiece) {
  const std::string body(20 << 20, 'x');
  start([&](const HttpRequest&, const HttpRespond& respond) { respond({.body = body + "#"}); });
  const auto client = connect();
  say(client, kGet);
  const auto text = hear(client, "#");
  EXPECT_EQ(text.size() - text.find("\r\n\r\n") - 4, body.size() + 1);
  say(client, kGet);  // the connection is as good as before
  EXPECT_TRUE(hear(client, "#").starts_with("HTTP/1.1 200 OK"));
}

TEST_F(HttpServerLoop, GivesALongBodyMoreTimeTheMoreOfItCame) {
  start([](const HttpRequest&, const HttpRespond& respond) { respond({.body = "#"}); },
        {.request_limit = std::chrono::milliseconds(1)});
  const auto client = connect();
  const std::string most(1 << 20, 'x');  // 32 s
  say(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n");
  std::size_t sent = 0;
  run_until([&] {
    const auto size =
        ::send(client.get(), most.data() + sent, most.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size > 0) sent += static_cast<std::size_t>(size);
    return sent == most.size();
  });
  // Deadlines are looked at every quarter of a second.
  const auto swept = loop_.timer([&] { loop_.stop(); });
  swept->set(std::chrono::steady_clock::now() + std::chrono::milliseconds(600));
  loop_.run();
  say(client, "x");
  EXPECT_TRUE(hear(client, "#").starts_with("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpServerLoop, EndsGracefully) {
  start_patient();
  const auto idle = connect();
  const auto half = connect();
  const auto busy = connect();
  say(half, "GET /half HTTP/1.1\r\n");
  say(busy, kGet);
  run_until([&] { return requests_.size() == 1 && server_->connection_count() == 3; });
  server_->stop_listening();
  server_->close_idle();
  EXPECT_EQ(hear(idle, ""), "<closed>");
  say(half, "Host: x\r\n\r\n");
  run_until([&] { return requests_.size() == 2; });
  for (const auto& respond : responds_) respond({.body = "#"});
  for (const auto* client : {&busy, &half}) {
    const auto text = hear(*client, "");
    EXPECT_NE(text.find("\r\nConnection: close\r\n"), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with("#<closed>")) << text;
  }
  UniqueFd late(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server_->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_NE(::connect(late.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
}

TEST_F(HttpServerLoop, DropsAnswersThatComeAfterItsEnd) {
  start_patient();
  const auto client = connect();
  say(client, kGet);
  run_until([&] { return requests_.size() == 1; });
  responds_[0].on_client_gone([] { FAIL() << "the server has gone, not the client"; });
  server_.reset();
  responds_[0]({.body = "#"});
  EXPECT_EQ(hear(client, ""), "<closed>");
}

}  // namespace
}  // namespace muster

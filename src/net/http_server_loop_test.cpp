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

#include "net/http_server_loop_fixture.h"

namespace muster {
namespace {

constexpr std::string_view kLongPost =
    "POST /long HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n";

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

// Time is earned by what comes, not kept from what came fast: 32 KiB/s is fast enough for ever, and
// who sends a mebibyte at once and no more is as late as anybody.
TEST_F(HttpServerLoop, GivesABodyMoreTimeTheMoreOfItComes) {
  constexpr auto kLimit = std::chrono::milliseconds(500);
  start([](const HttpRequest&, const HttpRespond& respond) { respond({.body = "#"}); },
        {.request_limit = kLimit});
  const auto steady = connect();
  const auto sudden = connect();
  constexpr std::string_view kHead =
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n";
  say(steady, kHead);
  say(sudden, kHead);
  say(sudden, std::string(256 << 10, 'x'));  // 8 s at the least pace
  const auto begin = std::chrono::steady_clock::now();
  std::size_t left = 1 << 20;
  std::function<void()> send_more = [&] {
    if (left == 0) return;
    constexpr std::size_t kPiece = 32 << 10;
    say(steady, std::string(kPiece, 'x'));
    left -= kPiece;
  };
  // Three times as long as a request may take, in pieces.
  auto next = begin;
  run_until([&] {
    const auto now = std::chrono::steady_clock::now();
    if (now < next) return false;
    send_more();
    next += kLimit * 3 / 32;
    return left == 0;
  });
  EXPECT_GT(std::chrono::steady_clock::now() - begin, 2 * kLimit);
  EXPECT_TRUE(hear(steady, "#").starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(hear(sudden, "").starts_with("HTTP/1.1 408 "));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 8 * kLimit) << "not what it had earned";
}

TEST_F(HttpServerLoop, EndsGracefully) {
  start_patient();
  const auto idle = connect();
  const auto half = connect();
  const auto busy = connect();
  say(half, "GET /half HTTP/1.1\r\n");
  say(busy, kGet);
  run_until([&] { return requests_.size() == 1 && server_->connection_count() == 3; });
  bool is_sent = false;
  server_->drain([&] { is_sent = true; });
  EXPECT_EQ(hear(idle, ""), "<closed>");
  const auto refused = hear(half, "");
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 503 ")) << refused;
  EXPECT_NE(refused.find("\r\nRetry-After: 1\r\n"), std::string::npos) << refused;
  EXPECT_FALSE(is_sent);
  for (const auto& respond : responds_) respond({.body = "#"});
  const auto text = hear(busy, "");
  EXPECT_NE(text.find("\r\nConnection: close\r\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("#<closed>")) << text;
  // Those that come now are answered by the handler, once each.
  const auto late = connect();
  say(late, kGet);
  run_until([&] { return requests_.size() == 2; });
  responds_[1]({.body = "#"});
  EXPECT_TRUE(hear(late, "").ends_with("#<closed>"));
  run_until([&] { return is_sent; });
  server_->stop_listening();
  UniqueFd later(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server_->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_NE(::connect(later.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
}

TEST_F(HttpServerLoop, TheEndWaitsForAReaderOfALongAnswer) {
  const std::string body(20 << 20, 'x');
  start([&](const HttpRequest&, const HttpRespond& respond) { respond({.body = body + "#"}); });
  const auto client = connect();
  const auto kept = connect();  // its answer is with the two systems when the end comes
  say(client, kGet);
  say(kept, kGet);
  run_until([&] { return server_->counters().requests == 2; });
  bool is_sent = false;
  server_->drain([&] { is_sent = true; });
  run_until([] { return true; });
  EXPECT_FALSE(is_sent);
  for (const auto* one : {&client, &kept}) {
    EXPECT_FALSE(is_sent);
    const auto text = hear(*one, "#");
    EXPECT_EQ(text.size() - text.find("\r\n\r\n") - 4, body.size() + 1);
  }
  run_until([&] { return is_sent; });
}

TEST_F(HttpServerLoop, TheEndDoesNotWaitForThoseWhoAskAfterItHasBegun) {
  HttpServerOptions options;
  options.on_head = [](HttpRequest& request) {
    HttpVerdict verdict;
    if (request.method == "POST") verdict.refusal = {.status = 503, .body = "#"};
    return verdict;
  };
  start_patient_with(options);
  const auto early = connect();
  say(early, kGet);
  run_until([&] { return requests_.size() == 1; });
  bool is_sent = false;
  server_->drain([&] { is_sent = true; });
  // Each is refused and stays, because it may still be sending.
  std::vector<UniqueFd> late;
  constexpr std::size_t kMany = 400;
  run_until([&] {
    late.push_back(connect());
    say(late.back(), std::string(kLongPost) + "\r\n");
    if (late.size() == 10) responds_[0]({.body = "#"});
    return is_sent || late.size() == kMany;
  });
  run_until([&, begin = std::chrono::steady_clock::now()] {
    // Long before the last of them is closed.
    return is_sent || std::chrono::steady_clock::now() - begin > std::chrono::seconds(1);
  });
  EXPECT_TRUE(is_sent);
}

TEST_F(HttpServerLoop, GivesUpWhoeverStillWaits) {
  start_patient();
  const auto client = connect();
  say(client, kGet);
  run_until([&] { return requests_.size() == 1; });
  responds_[0].on_client_gone([] { FAIL() << "the server gives up, not the client"; });
  server_->drain([] {});
  server_->give_up();
  const auto text = hear(client, "");
  EXPECT_TRUE(text.starts_with("HTTP/1.1 503 ")) << text;
  responds_[0]({.body = "too late"});
}

// ---- What is judged by the head ----

TEST_F(HttpServerLoop, RefusesByTheHeadBeforeTheBodyIsRead) {
  HttpServerOptions options;
  options.on_head = [](HttpRequest& request) {
    EXPECT_FALSE(request.peer.empty());
    HttpVerdict verdict;
    if (request.path != "/") verdict.refusal = {.status = 404, .body = "none#"};
    return verdict;
  };
  start([](const HttpRequest& request,
           const HttpRespond& respond) { respond({.body = request.body + "#"}); },
        options);
  for (const std::string expect : {"", "Expect: 100-continue\r\n"}) {
    const auto client = connect();
    say(client, std::string(kLongPost) + expect + "\r\n");
    const auto text = hear(client, "#");
    EXPECT_TRUE(text.starts_with("HTTP/1.1 404 ")) << text << "no 100 Continue goes before it";
    EXPECT_NE(text.find("\r\nConnection: close\r\n"), std::string::npos) << text;
    say(client, std::string(500'000, 'x'));  // what was under way does not lose the answer
    ::shutdown(client.get(), SHUT_WR);
    EXPECT_EQ(hear(client, ""), "<closed>");
  }
  // What is there whole is passed over, and the connection stays of use.
  const auto client = connect();
  say(client, "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}" + std::string(kGet));
  const auto both = hear(client, "\r\n\r\n#");
  EXPECT_NE(both.find("none#HTTP/1.1 200 "), std::string::npos) << both;
  EXPECT_EQ(both.find("Connection: close"), std::string::npos) << both;
  say(client, "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n" + std::string(kGet));
  EXPECT_EQ(hear(client, "\r\n\r\n#").find("none"), std::string::npos) << "HEAD has no body";
}

TEST_F(HttpServerLoop, TheHeadDecidesHowLongTheBodyMayBeAndComesWithTheRequest) {
  HttpServerOptions options;
  options.on_head = [](HttpRequest& request) {
    request.judged = std::make_shared<std::string>("seen");
    return HttpVerdict{.refusal = {}, .body_bytes = 4};
  };
  start(
      [](const HttpRequest& request, const HttpRespond& respond) {
        respond({.body = *std::static_pointer_cast<std::string>(request.judged) + "#"});
      },
      options);
  const auto client = connect();
  say(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nfour");
  EXPECT_TRUE(hear(client, "#").ends_with("\r\n\r\nseen#"));
  say(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n");
  EXPECT_TRUE(hear(client, "").starts_with("HTTP/1.1 413 "));
}

// ---- What all of them may hold ----

TEST_F(HttpServerLoop, EndlessExtensionsOfAChunkAreCutOff) {
  start([](const HttpRequest&, const HttpRespond& respond) { respond({.body = "#"}); });
  for (const std::string begin : {"5;", "2\r\n{}\r\n0\r\nX: "}) {
    const auto client = connect();
    say(client, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + begin);
    say(client, std::string(128 << 10, 'a'));
    EXPECT_TRUE(hear(client, "").starts_with("HTTP/1.1 431 "));
  }
}

TEST_F(HttpServerLoop, TellsThatThereIsNoRoomForABodyBeforeItIsRead) {
  HttpServerOptions options;
  options.memory_most = 8 << 20;
  start(
      [this](HttpRequest request, HttpRespond respond) {
        if (request.method == "GET") return respond({.body = "#"});
        requests_.push_back(std::move(request));
        responds_.push_back(std::move(respond));
      },
      options);
  const auto first = connect();
  say(first, kLongPost);
  say(first, "\r\n");
  const std::string body(1'000'000, 'x');
  std::size_t sent = 0;
  run_until([&] {
    const auto size =
        ::send(first.get(), body.data() + sent, body.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size > 0) sent += static_cast<std::size_t>(size);
    return requests_.size() == 1;
  });
  EXPECT_EQ(server_->memory().held(), 4'000'000U) << "four times the body";
  const auto second = connect();
  say(second, std::string(kLongPost) + "Expect: 100-continue\r\n\r\n");
  const auto refused = hear(second, "");
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 503 ")) << refused;
  EXPECT_NE(refused.find("\r\nRetry-After: 1\r\n"), std::string::npos) << refused;
  EXPECT_EQ(server_->counters().memory_refusals, 1U);
  EXPECT_FALSE(responds_[0].hold(4 << 20)) << "nor for what is computed";
  EXPECT_EQ(server_->counters().memory_refusals, 2U);
  EXPECT_TRUE(responds_[0].hold(1 << 20));
  const auto small = connect();
  say(small, kGet);
  EXPECT_TRUE(hear(small, "#").starts_with("HTTP/1.1 200 "));
  responds_[0]({.body = "#"});
  EXPECT_TRUE(hear(first, "#").starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(server_->memory().held(), 0U);
}

// Else a few clients could take all the room by heads alone.
TEST_F(HttpServerLoop, OfABodyThatIsComingCountsWhatHasComeAndNotWhatWasAnnounced) {
  start_patient();
  const auto client = connect();
  say(client,
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 16777216\r\n\r\n" + std::string(70'000, 'x'));
  run_until([&] { return server_->memory().held() >= 70'000; });
  EXPECT_LE(server_->memory().held(), 140'000U);
}

TEST_F(HttpServerLoop, AReaderThatTakesNothingMakesRoomForOthers) {
  HttpServerOptions options;
  options.memory_most = 32 << 20;
  std::string long_body(20 << 20, 'x');
  long_body.back() = '#';
  start([&](const HttpRequest&, const HttpRespond& respond) { respond({.body = long_body}); },
        options);
  const auto silent = connect();
  say(silent, kGet);
  run_until([&] { return server_->memory().held() >= long_body.size(); });
  // Who has held it for a moment may still be reading: others are told to come again.
  const auto early = connect();
  say(early, kGet);
  EXPECT_TRUE(hear(early, "").starts_with("HTTP/1.1 503 "));
  const auto begin = std::chrono::steady_clock::now();
  run_until([&] { return std::chrono::steady_clock::now() - begin > std::chrono::seconds(1); });
  const auto late = connect();
  say(late, kGet);
  EXPECT_TRUE(hear(late, "#").starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(server_->counters().memory_evictions, 1U);
  EXPECT_LT(hear(silent, "").size(), long_body.size());
}

TEST_F(HttpServerLoop, ShortAnswersThatNobodyReadsAreCountedAndMakeRoomToo) {
  HttpServerOptions options;
  options.memory_most = 256 << 10;
  const std::string body = std::string(60'000, 'x') + "#";
  start([&](const HttpRequest&, const HttpRespond& respond) { respond({.body = body}); }, options);
  std::string many;
  for (int i = 0; i < 400; ++i) many += kGet;  // more than the systems between can take
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 8; ++i) {
    silent.push_back(connect());
    const int buffer = 4096;  // so that its system does not take all of it
    ::setsockopt(silent.back().get(), SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    say(silent.back(), many);
  }
  run_until([&] {
    return server_->counters().memory_refusals > 0 ||
           server_->memory().held() > options.memory_most;
  });
  EXPECT_LE(server_->memory().held(), options.memory_most);
  const auto begin = std::chrono::steady_clock::now();
  run_until([&] { return std::chrono::steady_clock::now() - begin > std::chrono::seconds(1); });
  const auto late = connect();
  say(late, kGet);
  EXPECT_TRUE(hear(late, "#").starts_with("HTTP/1.1 200 "));
  EXPECT_GE(server_->counters().memory_evictions, 1U);
}

TEST_F(HttpServerLoop, CountsTheHeadersOfARequestUntilItsAnswer) {
  start_patient();
  const auto client = connect();
  say(client, "GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + std::string(10'000, 'x') + "\r\n\r\n");
  run_until([&] { return requests_.size() == 1; });
  EXPECT_GT(server_->memory().held(), 10'000U);
  EXPECT_LT(server_->memory().held(), 12'000U);
  responds_[0]({.body = "#"});
  EXPECT_TRUE(hear(client, "#").starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(server_->memory().held(), 0U);
}

TEST_F(HttpServerLoop, TheLongestIdleGivesItsPlaceToANewcomer) {
  start_patient_with({.connections_most = 2});
  const auto busy = connect();
  say(busy, kGet);
  run_until([&] { return requests_.size() == 1; });
  const auto idle = connect();
  run_until([&] { return server_->connection_count() == 2; });
  const auto third = connect();
  say(third, kGet);
  run_until([&] { return requests_.size() == 2; });
  EXPECT_EQ(hear(idle, ""), "<closed>");
  EXPECT_EQ(server_->counters().idle_evicted, 1U);
  const auto fourth = connect();  // nobody is idle now
  EXPECT_TRUE(hear(fourth, "").starts_with("HTTP/1.1 503 "));
  for (const auto& respond : responds_) respond({.body = "#"});
  EXPECT_TRUE(hear(busy, "#").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(hear(third, "#").starts_with("HTTP/1.1 200 "));
}

// Systems buffer megabytes: a reader at a good pace takes long to make room for the next write.
TEST_F(HttpServerLoop, ASlowButSteadyReaderGetsAllOfItsAnswer) {
  const std::string body(6 << 20, 'x');
  constexpr auto kLimit = std::chrono::milliseconds(800);
  start([&](const HttpRequest&, const HttpRespond& respond) { respond({.body = body + "#"}); },
        {.write_stall_limit = kLimit});
  const auto client = connect();
  say(client, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  run_until([&] { return server_->counters().requests == 1; });
  std::size_t size = 0;
  auto next = std::chrono::steady_clock::now();
  bool is_over = false;
  run_until([&] {
    if (std::chrono::steady_clock::now() < next) return false;
    next += kLimit / 2;
    std::string piece(1 << 20, '\0');
    for (std::size_t at = 0; at < piece.size();) {
      const auto got = ::recv(client.get(), piece.data(), piece.size() - at, MSG_DONTWAIT);
      is_over |= got == 0;
      if (got <= 0) break;
      at += static_cast<std::size_t>(got);
      size += static_cast<std::size_t>(got);
    }
    return is_over || server_->connection_count() == 0;
  });
  while (!is_over) {  // what the system still has of it
    std::array<char, 65536> piece{};
    const auto got = ::recv(client.get(), piece.data(), piece.size(), 0);
    ASSERT_GE(got, 0) << "it was reset after " << size;
    is_over = got == 0;
    size += static_cast<std::size_t>(got);
  }
  EXPECT_GT(size, body.size());
  EXPECT_EQ(server_->counters().slow_readers, 0U);
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

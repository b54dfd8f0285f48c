// Answers in parts, over real sockets.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/http_client.h"
#include "net/http_message.h"
#include "net/http_server_loop_fixture.h"
#include "net/test_certificates.h"

namespace muster {
namespace {

class HttpServerStream : public HttpServerLoop {
 protected:
  /// A client whose request the handler has, and `responds_.back()` leads to.
  UniqueFd ask(std::string_view request = kGet) {
    auto client = connect();
    say(client, request);
    run_until([&, count = responds_.size()] { return responds_.size() > count; });
    return client;
  }

  /// Writes until the client's systems take no more. Bytes that were given.
  std::size_t fill(const HttpRespond& respond) {
    const std::string part(8 << 10, 'x');
    std::size_t size = 0;
    bool has_room = true;
    while (has_room) {
      has_room = respond.write(part);
      size += part.size();
    }
    return size;
  }

  void wait_for(Duration time) {
    const auto begin = std::chrono::steady_clock::now();
    run_until([&] { return std::chrono::steady_clock::now() - begin > time; });
  }

  static constexpr auto kNoRoomCall = [] {};
};

std::string body_of(const std::string& answer) {
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

// RFC 9112, section 7.1: the size of each chunk in hexadecimal digits, the last one's is 0.
TEST_F(HttpServerStream, SendsEachPartAsAChunkWhenItIsWritten) {
  start_patient();
  const auto client = ask();
  ASSERT_TRUE(responds_[0].begin_stream({.content_type = "text/event-stream"}, kNoRoomCall));
  const auto head = hear(client, "\r\n\r\n");
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\n")) << head;
  EXPECT_NE(head.find("\r\nTransfer-Encoding: chunked\r\n"), std::string::npos) << head;
  EXPECT_NE(head.find("\r\nContent-Type: text/event-stream\r\n"), std::string::npos) << head;
  EXPECT_EQ(head.find("Content-Length"), std::string::npos) << head;
  EXPECT_TRUE(responds_[0].write("first part"));
  EXPECT_EQ(hear(client, "part\r\n"), "a\r\nfirst part\r\n");
  EXPECT_TRUE(responds_[0].write(""));  // not the last chunk
  EXPECT_TRUE(responds_[0].write("2nd"));
  EXPECT_EQ(hear(client, "2nd\r\n"), "3\r\n2nd\r\n");
  responds_[0].end_stream();
  EXPECT_EQ(hear(client, "0\r\n\r\n"), "0\r\n\r\n");
  EXPECT_TRUE(responds_[0].write("too late"));
  responds_[0].end_stream();
  say(client, kGet);  // the connection is as good as before
  run_until([&] { return responds_.size() == 2; });
  responds_[1]({.body = "#"});
  EXPECT_TRUE(hear(client, "#").starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(server_->counters().clients_gone, 0U);
}

TEST_F(HttpServerStream, ServesAPipelineWhoseAnswersAreGivenFromWithinTheHandler) {
  start([](const HttpRequest& request, const HttpRespond& respond) {
    EXPECT_TRUE(respond.begin_stream({.body = "["}, kNoRoomCall));
    respond.write(request.path);
    respond.end_stream();
    respond({.body = "twice"});
  });
  const auto client = connect();
  say(client, "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto text = hear(client, "/2\r\n0\r\n\r\n");
  EXPECT_NE(text.find("\r\n\r\n1\r\n[\r\n2\r\n/1\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("twice"), std::string::npos) << text;
}

TEST_F(HttpServerStream, AClientOfHttp10GetsThePartsAsTheyAreUpToTheEnd) {
  start_patient();
  const auto client = ask("GET / HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(responds_[0].begin_stream({}, kNoRoomCall));
  responds_[0].write("first,");
  responds_[0].write("second");
  responds_[0].end_stream();
  const auto text = hear(client, "");
  EXPECT_EQ(body_of(text), "first,second<closed>");
  EXPECT_EQ(text.find("Transfer-Encoding"), std::string::npos) << text;
  EXPECT_NE(text.find("\r\nConnection: close\r\n"), std::string::npos) << text;
}

TEST_F(HttpServerStream, HeadWantsNoPart) {
  start_patient();
  const auto client = ask("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_FALSE(responds_[0].begin_stream({.body = "[first]"}, kNoRoomCall));
  EXPECT_TRUE(responds_[0].write("[second]"));
  responds_[0].end_stream();
  EXPECT_EQ(body_of(hear(client, "\r\n\r\n")), "");
  say(client, kGet);
  run_until([&] { return responds_.size() == 2; });
  responds_[1]({.body = "#"});
  EXPECT_TRUE(hear(client, "#").starts_with("HTTP/1.1 200 OK\r\n")) << "nothing lies before it";
}

TEST_F(HttpServerStream, TellsTheWriterToWaitAndWhenThereIsRoom) {
  start_patient();
  const auto client = ask();
  int calls = 0;
  ASSERT_TRUE(responds_[0].begin_stream({}, [&] { ++calls; }));
  auto size = fill(responds_[0]);
  EXPECT_GT(server_->memory().held(), kStreamBytesMost) << "what is kept is counted";
  run_until([] { return true; });
  EXPECT_EQ(calls, 0) << "nobody has read";
  std::string text;
  run_until([&] {
    std::array<char, 65536> piece{};
    const auto got = ::recv(client.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (got > 0) text.append(piece.data(), static_cast<std::size_t>(got));
    return calls > 0;
  });
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(responds_[0].write("last"));
  responds_[0].end_stream();
  text += hear(client, "last\r\n0\r\n\r\n");
  // 2000 is 8 Ki in hexadecimal digits.
  EXPECT_EQ(body_of(text).size(), size / (8 << 10) * (4 + 2 + (8 << 10) + 2) +
                                      std::string_view("4\r\nlast\r\n0\r\n\r\n").size());
  run_until([&] { return server_->memory().held() == 0; });
  EXPECT_EQ(calls, 1);
}

TEST_F(HttpServerStream, TellsOnceThatTheClientHasGone) {
  start_patient();
  auto client = ask();
  int calls = 0;
  responds_[0].on_client_gone([&] { ++calls; });
  ASSERT_TRUE(responds_[0].begin_stream({}, kNoRoomCall));
  responds_[0].write("part");
  client.reset();
  run_until([&] { return calls > 0; });
  EXPECT_TRUE(responds_[0].write("dropped"));
  responds_[0].end_stream();
  run_until([] { return true; });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(server_->counters().clients_gone, 1U);
  EXPECT_EQ(server_->connection_count(), 0U);
}

// A reset is seen by the write itself; the writer is not called from within it.
TEST_F(HttpServerStream, AWriteThatFailsTellsOfItLater) {
  start_patient();
  auto client = ask();
  bool is_writing = false;
  int calls = 0;
  responds_[0].on_client_gone([&] {
    EXPECT_FALSE(is_writing);
    ++calls;
  });
  ASSERT_TRUE(responds_[0].begin_stream({}, kNoRoomCall));
  const ::linger at_once{1, 0};
  ::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  client.reset();
  is_writing = true;
  for (int i = 0; i < 3; ++i) responds_[0].write("part");
  is_writing = false;
  run_until([&] { return calls > 0; });
  run_until([] { return true; });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(server_->connection_count(), 0U);
}

TEST_F(HttpServerStream, AReaderThatTakesNothingIsCutOff) {
  start_patient_with({.write_stall_limit = std::chrono::milliseconds(400)});
  const auto client = ask();
  int calls = 0;
  responds_[0].on_client_gone([&] { ++calls; });
  ASSERT_TRUE(responds_[0].begin_stream({}, kNoRoomCall));
  fill(responds_[0]);
  run_until([&] { return calls > 0; });
  EXPECT_EQ(server_->counters().slow_readers, 1U);
  EXPECT_EQ(server_->memory().held(), 0U);
  EXPECT_TRUE(hear(client, "").ends_with("<reset>"));
}

// A writer may take its time: the stall limit is the reader's alone.
TEST_F(HttpServerStream, AWriterThatPausesLosesNobody) {
  start_patient_with({.write_stall_limit = std::chrono::milliseconds(100)});
  const auto client = ask();
  ASSERT_TRUE(responds_[0].begin_stream({}, kNoRoomCall));
  responds_[0].write("first");
  wait_for(std::chrono::milliseconds(600));  // the deadlines are looked at twice
  responds_[0].write("second");
  responds_[0].end_stream();
  EXPECT_NE(hear(client, "second\r\n0\r\n\r\n").find("5\r\nfirst\r\n"), std::string::npos);
}

TEST_F(HttpServerStream, AWriterThatDoesNotWaitIsBoundedByTheServersMemory) {
  start_patient_with({.memory_most = 1 << 20});
  const auto client = ask();
  int calls = 0;
  responds_[0].on_client_gone([&] { ++calls; });
  ASSERT_TRUE(responds_[0].begin_stream({}, kNoRoomCall));
  for (int i = 0; i < 4096; ++i) {  // 32 MiB
    responds_[0].write(std::string(8 << 10, 'x'));
    ASSERT_LE(server_->memory().held(), server_->memory().most());
  }
  run_until([&] { return calls > 0; });
  EXPECT_EQ(server_->counters().memory_evictions, 1U);
  EXPECT_EQ(server_->memory().held(), 0U);
}

TEST_F(HttpServerStream, AStalledStreamMakesRoomForOthers) {
  start_patient_with({.memory_most = 512 << 10});
  const auto stalled = ask();
  int calls = 0;
  responds_[0].on_client_gone([&] { ++calls; });
  ASSERT_TRUE(responds_[0].begin_stream({}, kNoRoomCall));
  fill(responds_[0]);
  wait_for(std::chrono::milliseconds(1100));
  const auto other = ask();
  std::string body(440 << 10, 'y');
  body.back() = '#';
  responds_[1]({.body = std::move(body)});
  EXPECT_TRUE(hear(other, "#").starts_with("HTTP/1.1 200 OK\r\n"));
  run_until([&] { return calls > 0; });
  EXPECT_EQ(server_->counters().memory_evictions, 1U);
}

TEST_F(HttpServerStream, TheServersEndWaitsForAStreamAndGivingUpCutsItOff) {
  start_patient();
  const auto whole = ask();
  const auto endless = ask();
  int calls = 0;
  responds_[1].on_client_gone([&] { ++calls; });
  for (const auto& respond : responds_) ASSERT_TRUE(respond.begin_stream({}, kNoRoomCall));
  bool is_sent = false;
  server_->drain([&] { is_sent = true; });
  responds_[0].write("part");
  responds_[0].end_stream();
  EXPECT_TRUE(hear(whole, "").ends_with("4\r\npart\r\n0\r\n\r\n<closed>"));
  EXPECT_FALSE(is_sent);
  server_->give_up();
  EXPECT_EQ(calls, 1);
  const auto cut = hear(endless, "");
  EXPECT_TRUE(cut.ends_with("\r\n\r\n<closed>")) << cut;
  run_until([&] { return is_sent; });
}

TEST_F(HttpServerStream, NothingIsToldBehindTheServersEnd) {
  start_patient();
  const auto client = ask();
  responds_[0].on_client_gone([] { FAIL() << "the server has gone, not the client"; });
  ASSERT_TRUE(responds_[0].begin_stream({}, [] { FAIL() << "there is no room to tell of"; }));
  fill(responds_[0]);
  server_.reset();
  EXPECT_TRUE(responds_[0].write("dropped"));
  responds_[0].end_stream();
  run_until([] { return true; });
}

// Through TLS, to the client of our own, with parts that are larger than a record.
TEST(HttpServerStreamTls, CarriesParts) {
  const testing::TestFolder folder;
  const auto authority = testing::make_identity({.name = "authority"});
  const auto identity =
      testing::make_identity({.name = "server", .alternatives = "IP:127.0.0.1"}, &authority);
  HttpServerOptions options;
  options.listen = {"127.0.0.1", 0};
  options.tls = TlsOptions{folder.write("server.pem", identity.certificate),
                           folder.write("server.key", identity.key),
                           {}};
  std::string whole;
  for (int i = 0; i < 40; ++i) whole += std::string(40'000, static_cast<char>('a' + i % 26));
  const auto server =
      HttpServer::start(options, [&](const HttpRequest&, const HttpRespond& respond) {
        respond.begin_stream({}, [] {});
        for (std::size_t at = 0; at < whole.size(); at += 25'000) {
          respond.write(std::string_view(whole).substr(at, 25'000));
        }
        respond.end_stream();
      });
  ASSERT_TRUE(server) << server.error().message;
  auto client =
      HttpClient::open("https://127.0.0.1:" + std::to_string((*server)->port()),
                       {.tls = {.ca_file = folder.write("ca.pem", authority.certificate)}});
  ASSERT_TRUE(client) << client.error().message;
  for (int i = 0; i < 2; ++i) {
    const auto answer = (*client)->call("GET", "/", {}, {});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_TRUE(answer->body == whole) << answer->body.size();
  }
}

}  // namespace
}  // namespace muster

#include "bench/load/load_generator.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/unique_fd.h"
#include "bench/load/api_requests.h"
#include "net/http_server.h"

namespace muster {
namespace {

class LoadGeneratorTest : public ::testing::Test {
 protected:
  void start(HttpHandler handler) {
    HttpServerOptions options;
    options.listen = {"127.0.0.1", 0};
    auto server = HttpServer::start(options, std::move(handler));
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    auto target = HttpClientTarget::find("http://127.0.0.1:" + std::to_string(server_->port()));
    ASSERT_TRUE(target);
    target_ = std::move(*target);
  }

  Result<TrialSamples> run(const LoadOptions& load) {
    const auto requests = prepare_plain_requests(target_.url, "/", {}, {});
    return run_load(target_, requests.bytes, any_answer_reader, load);
  }

  std::unique_ptr<HttpServer> server_;
  HttpClientTarget target_;
};

const HttpHandler kAnswer = [](const HttpRequest&, const HttpRespond& respond) {
  respond({.body = "ok", .headers = {{"Server", "test"}, {"Server-Timing", "work;dur=2"}}});
};

TEST_F(LoadGeneratorTest, AClosedLoopSendsAsManyAsItIsTold) {
  start(kAnswer);
  const auto trial = run({.clients = 3, .requests_most = 100});
  ASSERT_TRUE(trial) << trial.error().message;
  ASSERT_EQ(trial->samples.size(), 100U);
  EXPECT_EQ(trial->connections_opened, 3U);
  EXPECT_EQ(trial->connections_most, 3U);
  EXPECT_EQ(trial->server, "test");
  ASSERT_EQ(trial->stages.size(), 1U);
  EXPECT_EQ(trial->stages[0].name, "work");
  EXPECT_EQ(trial->stages[0].seconds, std::vector<double>(100, 0.002));
  double last = 0;
  for (const auto& sample : trial->samples) {
    EXPECT_EQ(sample.outcome, SampleEnd::Answered);
    EXPECT_EQ(sample.status, 200);
    EXPECT_GE(sample.intended, last);
    last = sample.intended;
    // Every part of the time comes after the one before.
    EXPECT_GE(sample.ready, sample.intended);
    EXPECT_GE(sample.started, sample.ready);
    EXPECT_GE(sample.sent, sample.started);
    EXPECT_GE(sample.first_byte, sample.sent);
    EXPECT_GE(sample.end, sample.first_byte);
  }
}

TEST_F(LoadGeneratorTest, AnOpenLoopKeepsItsSchedule) {
  start(kAnswer);
  const ArrivalPlan plan{.rate_begin = 2000};
  const auto trial = run({.arrivals = plan, .seconds = 0.2, .seed = 5});
  ASSERT_TRUE(trial) << trial.error().message;
  ArrivalSchedule schedule(plan, 5);
  for (const auto& sample : trial->samples) {
    EXPECT_EQ(sample.intended, seconds(*schedule.next()));
    EXPECT_EQ(sample.outcome, SampleEnd::Answered);
  }
  EXPECT_GE(seconds(*schedule.next()), 0.2);
  EXPECT_EQ(trial->sending_seconds, 0.2);
}

TEST_F(LoadGeneratorTest, ARequestWithoutAConnectionWaitsAndTheWaitIsLatency) {
  // The first answer is held until three more requests are due: they can only wait.
  std::mutex mutex;
  std::vector<HttpRespond> held;
  std::atomic<int> count = 0;
  start([&](const HttpRequest&, const HttpRespond& respond) {
    const std::lock_guard lock(mutex);
    if (count++ > 0) return respond({.body = "ok"});
    held.push_back(respond);
  });
  std::atomic<int> asked = 0;
  const auto trial =
      run({.arrivals = ArrivalPlan{.law = ArrivalLaw::Trace, .trace = {0, 0.001, 0.002, 0.003}},
           .connections_most = 1,
           .is_cancelled = [&] {
             const std::lock_guard lock(mutex);
             // Every 10 ms: all four are due by the second time.
             if (++asked > 1 && !held.empty()) {
               held.front()({.body = "ok"});
               held.clear();
             }
             return false;
           }});
  ASSERT_TRUE(trial) << trial.error().message;
  ASSERT_EQ(trial->samples.size(), 4U);
  EXPECT_EQ(trial->connections_opened, 1U);
  for (std::size_t i = 1; i < 4; ++i) {
    const auto& sample = trial->samples[i];
    EXPECT_GE(sample.started, trial->samples[0].end) << i;
    EXPECT_GT(sample.ready, sample.intended) << i;
    EXPECT_GE(sample.latency(), sample.ready - sample.intended) << i;
    EXPECT_LT(sample.service(), sample.latency()) << i;
  }
}

// Of a burst that was noticed late only as many would show it as there are connections, and the
// others would say that the server had been busy.
TEST_F(LoadGeneratorTest, WhatTheGeneratorIsLateIsNoWaitForAConnection) {
  std::atomic<bool> has_begun = false;
  start([&](const HttpRequest&, const HttpRespond& respond) {
    has_begun = true;
    respond({.body = "ok"});
  });
  bool has_stalled = false;
  const auto trial =
      run({.arrivals = ArrivalPlan{.law = ArrivalLaw::Trace, .trace = {0, 0.4, 0.4, 0.4}},
           .connections_most = 1,
           .is_cancelled = [&] {
             // The stall that is meant: it begins before the last three are due, at one of the
             // first ticks, and ends a tenth of a second behind that.
             if (!has_begun || std::exchange(has_stalled, true)) return false;
             const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
             while (std::chrono::steady_clock::now() < until) {
             }
             return false;
           }});
  ASSERT_TRUE(trial) << trial.error().message;
  ASSERT_EQ(trial->samples.size(), 4U);
  for (std::size_t i = 1; i < 4; ++i) {
    const auto& sample = trial->samples[i];
    EXPECT_GE(sample.lag(), 0.1) << i;
    EXPECT_NEAR((sample.ready - sample.intended) + sample.lag() + sample.service(),
                sample.latency(), 1e-9)
        << i;
  }
}

// A socket that nobody accepts from, so that all descriptors are the generator's. The kernel
// connects its clients all the same.
class DeafServer {
 public:
  DeafServer() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket_.get(), any, size), 0);
    EXPECT_EQ(::listen(socket_.get(), 128), 0);
    EXPECT_EQ(::getsockname(socket_.get(), any, &size), 0);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  const std::string& url() const { return url_; }
  int fd() const { return socket_.get(); }

 private:
  UniqueFd socket_;
  std::string url_;
};

// So many more descriptors than now, for as long as it lives.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t more) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &usual_), 0);
    const UniqueFd next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    rlimit few = usual_;
    few.rlim_cur = static_cast<rlim_t>(next.get()) + more;
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~FewDescriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &usual_), 0); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit usual_{};
};

// An open loop begins with 16 connections, and its loop itself has three descriptors.
TEST_F(LoadGeneratorTest, AConnectionWithoutADescriptorIsNone) {
  const DeafServer server;
  auto target = HttpClientTarget::find(server.url());
  ASSERT_TRUE(target) << target.error().message;
  target_ = std::move(*target);
  const FewDescriptors few(3 + 16 + 8);
  const auto trial =
      run({.arrivals = ArrivalPlan{.law = ArrivalLaw::Trace, .trace = std::vector<double>(64, 0.0)},
           .connections_most = 64,
           .seconds = 0.2,
           .answer_limit_seconds = 0.2});
  ASSERT_TRUE(trial) << trial.error().message;
  EXPECT_EQ(trial->samples.size(), 64U);
  EXPECT_LE(trial->connections_most, 24U);
  // 24 that time out, as many in their place, and again before the trial is over.
  EXPECT_LE(trial->connections_opened, 3U * 24U);
}

TEST_F(LoadGeneratorTest, NamesEachWayOfFailing) {
  std::atomic<int> count = 0;
  start([&](const HttpRequest&, const HttpRespond& respond) {
    constexpr std::array kStatuses{200, 429, 503, 500, 404};
    respond(
        {.status = kStatuses[static_cast<std::size_t>(count++) % kStatuses.size()], .body = "x"});
  });
  const auto trial = run({.requests_most = 5});
  ASSERT_TRUE(trial);
  std::vector<SampleEnd> ends;
  for (const auto& sample : trial->samples) ends.push_back(sample.outcome);
  EXPECT_EQ(ends, (std::vector{SampleEnd::Answered, SampleEnd::Refused, SampleEnd::Refused,
                               SampleEnd::BadStatus, SampleEnd::BadStatus}));
  EXPECT_EQ(trial->problems, (std::vector<std::string>{"the status is 429", "the status is 503",
                                                       "the status is 500", "the status is 404"}));
}

// Durations that are no time, and names beyond the 64 that become columns, as where a server puts
// the number of the request into them: 70 answers with 1 and 1 each, 6 of them with too new a name.
TEST_F(LoadGeneratorTest, CountsStagesThatItCannotKeep) {
  std::atomic<int> count = 0;
  start([&](const HttpRequest&, const HttpRespond& respond) {
    respond(
        {.body = "ok",
         .headers = {{"Server-Timing", "r" + std::to_string(count++) + ";dur=0, total;dur=soon"}}});
  });
  const auto trial = run({.requests_most = 70});
  ASSERT_TRUE(trial) << trial.error().message;
  EXPECT_EQ(trial->stages.size(), 64U);
  EXPECT_EQ(trial->stages_left_out, 76U);
}

// The third sentence of a status says no more than the first two; that of another one does.
TEST_F(LoadGeneratorTest, TellsWhatTheServerSaysOfARefusal) {
  std::atomic<int> count = 0;
  start([&](const HttpRequest&, const HttpRespond& respond) {
    const int number = count++;
    respond({.status = number < 3 ? 404 : 429,
             .body = R"({"error":{"message":"no model x, request )" + std::to_string(number) +
                     R"("}})"});
  });
  const auto trial = run({.requests_most = 4});
  ASSERT_TRUE(trial) << trial.error().message;
  EXPECT_EQ(trial->problems,
            (std::vector<std::string>{"the status is 404: no model x, request 0",
                                      "the status is 404: no model x, request 1",
                                      "the status is 429: no model x, request 3"}));
}

// Sends a first client 100 bytes of an answer that is said to have a million.
class FloodServer {
 public:
  explicit FloodServer(bool closes) : closes_(closes), thread_([this] { serve(); }) {}
  ~FloodServer() { ::shutdown(socket_.fd(), SHUT_RDWR); }  // where no client has come
  FloodServer(const FloodServer&) = delete;
  FloodServer& operator=(const FloodServer&) = delete;
  const std::string& url() const { return socket_.url(); }

 private:
  void serve() const {
    const UniqueFd peer(::accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    std::array<char, 4096> bytes{};
    EXPECT_GT(::recv(peer.get(), bytes.data(), bytes.size(), 0), 0);
    const auto answer =
        "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + std::string(100, 'x');
    EXPECT_EQ(::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(answer.size()));
    if (closes_) return;
    while (::recv(peer.get(), bytes.data(), bytes.size(), 0) > 0) continue;  // until it is closed
  }

  const DeafServer socket_;
  const bool closes_;
  const std::jthread thread_;
};

// The rest of the answer never comes: without a limit it would be waited for, or kept. Whether the
// server ends the connection first makes no difference.
TEST_F(LoadGeneratorTest, AnAnswerLongerThanItCanBeIsNotWaitedFor) {
  for (const bool closes : {false, true}) {
    SCOPED_TRACE(closes);
    const FloodServer server(closes);
    auto target = HttpClientTarget::find(server.url());
    ASSERT_TRUE(target) << target.error().message;
    target_ = std::move(*target);
    const auto requests = prepare_plain_requests(target_.url, "/", {}, {});
    const auto trial = run_load(target_, requests.bytes,
                                [] { return list_answer_reader(AnswerList::Vectors, 1, 50); },
                                {.requests_most = 1});
    ASSERT_TRUE(trial) << trial.error().message;
    ASSERT_EQ(trial->samples.size(), 1U);
    EXPECT_EQ(trial->samples[0].outcome, SampleEnd::Unreadable);
    EXPECT_EQ(trial->problems,
              std::vector<std::string>{
                  "the answer is longer than the 50 bytes that what was asked for can need"});
    EXPECT_EQ(trial->last_broken, "");
  }
}

// Half an answer that could be one.
TEST_F(LoadGeneratorTest, TellsWhatTheLastBrokenConnectionSaid) {
  const FloodServer server(true);
  auto target = HttpClientTarget::find(server.url());
  ASSERT_TRUE(target) << target.error().message;
  target_ = std::move(*target);
  const auto trial = run({.requests_most = 1});
  ASSERT_TRUE(trial) << trial.error().message;
  ASSERT_EQ(trial->samples.size(), 1U);
  EXPECT_EQ(trial->samples[0].outcome, SampleEnd::Broken);
  EXPECT_EQ(trial->problems, std::vector<std::string>{trial->last_broken});
  EXPECT_NE(trial->last_broken, "");
}

TEST_F(LoadGeneratorTest, GivesUpWhereNoAnswerComes) {
  std::vector<HttpRespond> held;
  start([&](const HttpRequest&, const HttpRespond& respond) { held.push_back(respond); });
  const auto trial = run({.clients = 2, .requests_most = 2, .answer_limit_seconds = 0.05});
  server_.reset();
  ASSERT_TRUE(trial);
  ASSERT_EQ(trial->samples.size(), 2U);
  EXPECT_EQ(trial->samples[0].outcome, SampleEnd::TimedOut);
  EXPECT_GE(trial->samples[0].latency(), 0.05);
}

TEST_F(LoadGeneratorTest, ReconnectsWhenTheServerEndsConnections) {
  start(kAnswer);
  const std::vector<std::string> requests{
      http_request_head(target_.url, "GET", "/", {{"Connection", "close"}}, 0)};
  const auto trial =
      run_load(target_, requests, any_answer_reader, {.clients = 2, .requests_most = 20});
  ASSERT_TRUE(trial);
  EXPECT_EQ(trial->samples.size(), 20U);
  EXPECT_TRUE(std::ranges::all_of(trial->samples, &Sample::is_answered));
  EXPECT_GE(trial->connections_opened, 20U);
  // It ends with the last answer, not with the tick that sees it.
  EXPECT_EQ(trial->sending_seconds, std::ranges::max(trial->samples, {}, &Sample::end).end);
}

TEST_F(LoadGeneratorTest, FailsWhereNobodyListens) {
  start(kAnswer);
  server_.reset();
  for (const auto& load :
       {LoadOptions{.clients = 2}, LoadOptions{.arrivals = ArrivalPlan{.rate_begin = 10}}}) {
    const auto trial = run(load);
    ASSERT_FALSE(trial);
    EXPECT_EQ(trial.error().kind, ErrorKind::Unavailable);
  }
}

TEST_F(LoadGeneratorTest, CanBeCancelled) {
  start(kAnswer);
  const auto trial = run({.seconds = 1000, .is_cancelled = [] { return true; }});
  ASSERT_FALSE(trial);
  EXPECT_EQ(trial.error().kind, ErrorKind::Cancelled);
}

}  // namespace
}  // namespace muster

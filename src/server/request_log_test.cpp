#include "server/request_log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster {
namespace {

class StillClock final : public Clock {
 public:
  TimePoint now() const override { return time; }
  TimePoint time{std::chrono::seconds(10)};
};

class RequestLogTest : public testing::Test {
 protected:
  RequestLog::Write keep() {
    return [this](const LogLine& line) {
      lines_.push_back(std::string(log_level_name(line.level)) + " " + std::string(line.message) +
                       " " + std::string(line.request_id));
    };
  }

  static AnsweredRequest refusal(std::string_view id, int status = 429) {
    return {.method = "POST",
            .path = "/v1/embeddings",
            .asker = "key ci",
            .reason = "rate_limit_exceeded",
            .request_id = id,
            .status = status};
  }

  StillClock clock_;
  EventLoop loop_;
  std::vector<std::string> lines_;
};

TEST_F(RequestLogTest, OfOneKindOfRefusalThereIsOneLineASecondAndHowManyMore) {
  RequestLog log(keep(), LogLevel::Info, loop_, clock_);
  for (int i = 0; i < 1000; ++i) log.answered(refusal("a"));
  log.answered(refusal("b", 503));  // another kind
  EXPECT_EQ(lines_,
            (std::vector<std::string>{
                "warning refused with 429 rate_limit_exceeded: POST /v1/embeddings, key ci a",
                "warning refused with 503 rate_limit_exceeded: POST /v1/embeddings, key ci b"}));
  lines_.clear();
  log.stop();
  EXPECT_EQ(lines_,
            std::vector<std::string>{
                "warning refused with 429 rate_limit_exceeded: 999 more since the line before "});
}

TEST_F(RequestLogTest, ASecondLaterTheNextRefusalHasItsLine) {
  RequestLog log(keep(), LogLevel::Info, loop_, clock_);
  log.answered(refusal("a"));
  clock_.time += std::chrono::milliseconds(999);
  log.answered(refusal("b"));
  clock_.time += std::chrono::milliseconds(1);
  log.answered(refusal("c"));
  ASSERT_EQ(lines_.size(), 2);
  EXPECT_TRUE(lines_[1].ends_with(" c"));
}

// The test's own clock is behind the loop's, whose timer is therefore due at once.
TEST_F(RequestLogTest, WhatWasNotToldIsToldWithoutAnotherRefusal) {
  RequestLog log(
      [this, write = keep()](const LogLine& line) {
        write(line);
        if (lines_.size() == 2) loop_.stop();
      },
      LogLevel::Info, loop_, clock_);
  log.answered(refusal("a"));
  log.answered(refusal("b"));
  loop_.run();
  EXPECT_EQ(lines_[1],
            "warning refused with 429 rate_limit_exceeded: 1 more since the line before ");
}

TEST_F(RequestLogTest, AtDebugEachRequestHasALineAndElseOnlyRefusals) {
  RequestLog log(keep(), LogLevel::Info, loop_, clock_);
  const AnsweredRequest good{.method = "GET",
                             .path = "/livez",
                             .asker = "127.0.0.1:5",
                             .request_id = "r",
                             .status = 200,
                             .milliseconds = 0.25};
  log.answered(good);
  EXPECT_FALSE(log.wants(200));
  EXPECT_TRUE(lines_.empty());
  log.set_level(LogLevel::Debug);
  log.answered(good);
  EXPECT_TRUE(log.wants(200));
  EXPECT_EQ(lines_, std::vector<std::string>{"debug GET /livez 200 in 0.25 ms, 127.0.0.1:5 r"});
}

// Whoever asks before a line is made must be told the same as decides whether there is one.
TEST_F(RequestLogTest, WantsRefusalsAndFaultsAndNoOthers) {
  const RequestLog log(keep(), LogLevel::Info, loop_, clock_);
  for (const int status : {401, 403, 408, 413, 429, 431, 500, 503}) {
    EXPECT_TRUE(log.wants(status)) << status;
  }
  for (const int status : {200, 304, 400, 404, 405, 409, 422}) {
    EXPECT_FALSE(log.wants(status)) << status;
  }
}

TEST_F(RequestLogTest, AProbeThatIsToldNoIsNotRefused) {
  RequestLog log(keep(), LogLevel::Info, loop_, clock_);
  log.answered({.method = "GET", .path = "/readyz", .status = 503, .is_probe = true});
  EXPECT_TRUE(lines_.empty());
}

TEST_F(RequestLogTest, APathIsCut) {
  RequestLog log(keep(), LogLevel::Info, loop_, clock_);
  const std::string path(100'000, 'x');
  log.answered({.method = "GET", .path = path, .asker = "a", .status = 403});
  EXPECT_LT(lines_.at(0).size(), 300);
}

}  // namespace
}  // namespace muster

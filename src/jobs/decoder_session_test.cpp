#include "jobs/decoder_session.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/build_info.h"
#include "coordinator/decoder_fixture.h"

namespace muster {
namespace {

/// A session with counting_worker, and what it told.
class DecoderSessionTest : public testing::Test {
 protected:
  ~DecoderSessionTest() override { ::unsetenv("COUNTING_WORKER"); }

  void start(const std::string& orders) {
    ::setenv("COUNTING_WORKER", orders.c_str(), 1);
    DecoderSessionEvents events;
    events.on_ready = [this](const DecoderReady&) { ++ready_count_; };
    events.on_token = [this](const GeneratedToken& token) {
      tokens_[token.sequence].push_back(token.token);
    };
    events.on_finished = [this](std::uint64_t id, FinishReason reason) { ends_[id] = reason; };
    events.on_failed = [this](std::uint64_t, const Error& error) {
      failure_ = error.message;
      failure_kind_ = error.kind;
    };
    events.on_notice = [this](const std::string& notice) { notices_ += notice + "\n"; };
    auto session = DecoderSession::start({.device = {},  // cpu:0
                                          .worker_program = counting_worker(),
                                          .torch_root = {},
                                          .build = std::string(build_name()),
                                          .source = source_,
                                          .silence_most = silence_most_},
                                         events, clock_);
    ASSERT_TRUE(session);
    session_ = *std::move(session);
  }

  Status run() {
    while (session_->pending_count() > 0) {
      MUSTER_TRY(session_->step(std::chrono::seconds(10)));
    }
    return Done{};
  }

  static std::vector<std::uint32_t> counted(std::uint32_t from, std::size_t count) {
    std::vector<std::uint32_t> tokens(count);
    std::iota(tokens.begin(), tokens.end(), from);
    return tokens;
  }

  SteadyClock clock_;
  std::string source_ = "counting";
  Duration silence_most_ = std::chrono::seconds(60);
  std::unique_ptr<DecoderSession> session_;
  int ready_count_ = 0;
  std::map<std::uint64_t, std::vector<std::uint32_t>> tokens_;
  std::map<std::uint64_t, FinishReason> ends_;
  std::string failure_;
  std::optional<ErrorKind> failure_kind_;
  std::string notices_;
};

TEST_F(DecoderSessionTest, TokensComeInOrderUntilTheLimitOrAStop) {
  start("");
  const auto limited = session_->submit({.ids = {10}, .token_limit = 4, .stop_ids = {}});
  const auto stopped = session_->submit({.ids = {20}, .token_limit = 40, .stop_ids = {23}});
  ASSERT_TRUE(run());
  EXPECT_EQ(tokens_[limited], counted(11, 4));
  EXPECT_EQ(ends_[limited], FinishReason::Length);
  EXPECT_EQ(tokens_[stopped], counted(21, 2));
  EXPECT_EQ(ends_[stopped], FinishReason::Stop);
}

TEST_F(DecoderSessionTest, AReplySurvivesItsWorkersWithoutATokenTwiceOrMissing) {
  for (const auto* order : {"die_after=5", "kill_after=3", "die_after=1"}) {
    SCOPED_TRACE(order);
    tokens_.clear();
    start(order);
    const auto first = session_->submit({.ids = {1, 2, 3}, .token_limit = 16, .stop_ids = {}});
    const auto second = session_->submit({.ids = {500}, .token_limit = 7, .stop_ids = {}});
    const auto outcome = run();
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_EQ(tokens_[first], counted(4, 16));
    EXPECT_EQ(tokens_[second], counted(501, 7));
    EXPECT_GT(session_->restart_count(), 2U);
  }
  EXPECT_NE(notices_.find("cpu:0: the worker died (signal 6 (Aborted)"), std::string::npos)
      << notices_;
}

// The last token was there and the end was not.
TEST_F(DecoderSessionTest, ALostEndIsKnownAllTheSame) {
  start("lose_end");
  const auto id = session_->submit({.ids = {10}, .token_limit = 4, .stop_ids = {}});
  const auto full = session_->submit({.ids = {900}, .token_limit = 500, .stop_ids = {}});
  ASSERT_TRUE(run());
  EXPECT_EQ(tokens_[id], counted(11, 4));
  EXPECT_EQ(ends_[id], FinishReason::Length);
  EXPECT_EQ(tokens_[full], counted(901, 99));  // the context of 100 is full
  EXPECT_EQ(ends_[full], FinishReason::Length);
}

TEST_F(DecoderSessionTest, WhatKillsEveryWorkerWithoutATokenIsTheEnd) {
  start("die_after=0");
  session_->submit({.ids = {10}, .token_limit = 4, .stop_ids = {}});
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::Unavailable);
  EXPECT_NE(outcome.error().message.find("the worker cannot be kept alive"), std::string::npos);
}

// As a guard of memory kills a worker that takes too much, whenever it has this prompt.
TEST_F(DecoderSessionTest, AWorkerThatIsKilledEachTimeIsTheEnd) {
  start("kill_on=10");
  session_->submit({.ids = {10}, .token_limit = 4, .stop_ids = {}});
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::Unavailable);
  EXPECT_NE(outcome.error().message.find("the worker cannot be kept alive: signal 9"),
            std::string::npos)
      << outcome.error().message;
  EXPECT_EQ(session_->restart_count(), 7U) << "eight have died";
}

// It is stopped as soon as it has the prompt, each time.
TEST_F(DecoderSessionTest, AWorkerThatHangsIsEnded) {
  silence_most_ = std::chrono::milliseconds(200);
  start("hang_on=7");
  session_->submit({.ids = {7}, .token_limit = 4, .stop_ids = {}});
  Status outcome = Done{};
  while (outcome && session_->pending_count() > 0) {
    outcome = session_->step(std::chrono::milliseconds(50));
  }
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message.find("cannot be kept alive: signal 9 (Killed) by muster"),
            std::string::npos)
      << outcome.error().message;
  EXPECT_EQ(session_->restart_count(), 2U) << "three have hung";
  EXPECT_NE(notices_.find("cpu:0: the worker has said nothing for too long"), std::string::npos);
}

// The context of 100 is full with the prompt alone: nothing has been lost with its worker.
TEST_F(DecoderSessionTest, APromptWithoutRoomForAReplyHasNotComeToItsEnd) {
  start("poison=7");
  const auto id = session_->submit(
      {.ids = std::vector<std::uint32_t>(100, 7), .token_limit = 4, .stop_ids = {}});
  EXPECT_FALSE(run()) << "three workers have died of it";
  EXPECT_EQ(ends_.count(id), 0U);
}

TEST_F(DecoderSessionTest, AWorkerThatIsKilledFromOutsideIsReplaced) {
  start("");
  while (ready_count_ == 0) ASSERT_TRUE(session_->step(std::chrono::seconds(10)));
  ::kill(*session_->worker_pid(), SIGKILL);
  const auto id = session_->submit({.ids = {10}, .token_limit = 4, .stop_ids = {}});
  ASSERT_TRUE(run());
  EXPECT_EQ(tokens_[id], counted(11, 4));
}

/// The same with a folder that is there.
class ChangedSourceTest : public DecoderSessionTest {
 protected:
  ChangedSourceTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("session." + std::to_string(::getpid()))) {
    write_counting_decoder(folder_);
    source_ = folder_.string();
  }
  ~ChangedSourceTest() override { std::filesystem::remove_all(folder_); }

  void change() const { std::ofstream(folder_ / "config.json", std::ios::app) << " "; }
  void run_until_ready(int count) {
    while (ready_count_ < count) ASSERT_TRUE(session_->step(std::chrono::seconds(10)));
  }
  void expect_refused(const Status& outcome) const {
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().kind, ErrorKind::Corrupt);
    EXPECT_EQ(outcome.error().message,
              source_ + " has changed since it was loaded first, and a reply must be of one model");
  }

  const std::filesystem::path folder_;
};

TEST_F(ChangedSourceTest, AnotherModelDoesNotGoOnWithTheReply) {
  start("");
  ASSERT_NO_FATAL_FAILURE(run_until_ready(1));
  ::kill(*session_->worker_pid(), SIGKILL);
  const auto id = session_->submit({.ids = {10}, .token_limit = 4, .stop_ids = {}});
  ASSERT_TRUE(run());
  EXPECT_EQ(tokens_[id], counted(11, 4)) << "the model is as it was";

  change();
  const auto other = session_->submit({.ids = {20}, .token_limit = 4, .stop_ids = {}});
  ASSERT_TRUE(run());
  EXPECT_EQ(tokens_[other], counted(21, 4)) << "its worker had loaded it before";

  ::kill(*session_->worker_pid(), SIGKILL);
  const auto lost = session_->submit({.ids = {30}, .token_limit = 4, .stop_ids = {}});
  expect_refused(run());
  expect_refused(session_->step(std::chrono::seconds(10)));
  EXPECT_EQ(tokens_.count(lost), 0U);
  EXPECT_EQ(session_->restart_count(), 1U);
}

// The next worker runs and has not said yet that it has loaded it.
TEST_F(ChangedSourceTest, AModelThatChangesWhileItIsLoadedAgainIsRefusedToo) {
  start("die_after=2");
  ASSERT_NO_FATAL_FAILURE(run_until_ready(1));
  ::setenv("COUNTING_WORKER", "", 1);
  const auto id = session_->submit({.ids = {10}, .token_limit = 4, .stop_ids = {}});
  while (session_->restart_count() == 0) ASSERT_TRUE(session_->step(std::chrono::seconds(10)));
  ASSERT_EQ(ready_count_, 1);
  change();
  expect_refused(run());
  EXPECT_EQ(tokens_[id], counted(11, 2));
}

TEST_F(DecoderSessionTest, NothingIsToldOfACancelledSequence) {
  start("");
  const auto id = session_->submit({.ids = {10}, .token_limit = 40, .stop_ids = {}});
  const auto other = session_->submit({.ids = {20}, .token_limit = 4, .stop_ids = {}});
  session_->cancel(id);
  ASSERT_TRUE(run());
  EXPECT_EQ(tokens_.count(id), 0U);
  EXPECT_EQ(ends_.count(id), 0U);
  EXPECT_EQ(tokens_[other], counted(21, 4));
}

TEST_F(DecoderSessionTest, AFailureIsToldOfItsSequence) {
  start("");
  session_->submit({.ids = std::vector<std::uint32_t>(100, 1), .token_limit = 4, .stop_ids = {}});
  ASSERT_TRUE(run());
  EXPECT_EQ(failure_, "no room for a reply");
}

TEST_F(DecoderSessionTest, AModelWhoseNumbersAreNoneIsNamed) {
  start("nan_at=2");
  const auto id = session_->submit({.ids = {10}, .token_limit = 4, .stop_ids = {}});
  ASSERT_TRUE(run());
  EXPECT_EQ(tokens_[id], counted(11, 2));
  EXPECT_EQ(failure_, "counting: the model's logits are not finite numbers");
  EXPECT_EQ(failure_kind_, ErrorKind::Corrupt);
}

TEST_F(DecoderSessionTest, WhatCannotBeLoadedIsTheEnd) {
  start("fail_load");
  session_->submit({.ids = {10}, .token_limit = 4, .stop_ids = {}});
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "told not to load");
}

TEST_F(DecoderSessionTest, AWorkerOfAnotherBuildIsRefused) {
  start("other_build");
  session_->submit({.ids = {10}, .token_limit = 4, .stop_ids = {}});
  const auto outcome = run();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::Unsupported);
}

}  // namespace
}  // namespace muster

// Which stream gets which place, and what becomes of those that get none; on real processes
// (stand_ins/counting_worker).
#include "coordinator/decoder_streams.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "coordinator/decoder_fleet_fixture.h"

namespace muster {
namespace {

class DecoderStreamsTest : public DecoderFleetTest {
 protected:
  void run_until_ready() {
    run_until([&] {
      const auto groups = fleet_->groups();
      return std::all_of(groups.begin(), groups.end(), [](const DecoderGroupView& group) {
        return group.state == DecoderGroupView::State::Ready;
      });
    });
  }
};

// ---- Places ----

TEST_F(DecoderStreamsTest, PlacesAreFreeAsLongAsAWorkerMayBeGivenMore) {
  start("wait_at=1", 2, 2);
  EXPECT_EQ(fleet_->free_count(), 0U) << "none is ready";
  run_until_ready();
  EXPECT_EQ(fleet_->free_count(), 4U);
  std::vector<StreamId> ids;
  for (std::uint32_t i = 0; i < 5; ++i) {
    ids.push_back(fleet_->submit({.ids = {100 * i}, .token_limit = 9}));
  }
  EXPECT_EQ(fleet_->free_count(), 4U) << "they are given away in the next step";
  run_until([&] { return tokens_.size() == 4; });
  EXPECT_EQ(fleet_->free_count(), 0U);
  EXPECT_FALSE(fleet_->cancel(ids[4]));
  EXPECT_TRUE(fleet_->cancel(ids[0]));
  EXPECT_EQ(fleet_->free_count(), 1U) << "its worker answers for it within a step";
  fleet_->workers().drain(1);
  EXPECT_LE(fleet_->free_count(), 1U);
  fleet_->workers().drain(0);
  EXPECT_EQ(fleet_->free_count(), 0U);
}

// One place. It was held for 10 s, and then for 2.
// Else the other one has them all, and a file of few prompts is computed on one device alone.
TEST_F(DecoderStreamsTest, AWorkerThatIsReadyLaterGetsItsShareOfTheStreams) {
  spreads_streams_ = true;
  start("wait_at=1", 2, 4);
  run_until_ready();
  fleet_->workers().restart(1);
  for (std::uint32_t i = 0; i < 4; ++i) fleet_->submit({.ids = {100 * i}, .token_limit = 9});
  run_until([&] { return tokens_.size() == 4; });
  EXPECT_EQ(fleet_->groups()[0].stream_count, 2U);
  EXPECT_EQ(fleet_->groups()[1].stream_count, 2U);
}

TEST_F(DecoderStreamsTest, TheWaitForPlacesIsPredictedByHowTheyComeFree) {
  start("wait_at=1", 1, 1);
  run_until_ready();
  EXPECT_FALSE(fleet_->wait_for_places(1)) << "nobody has had to wait";
  const auto first = fleet_->submit({.ids = {10}, .token_limit = 9});
  const auto second = fleet_->submit({.ids = {20}, .token_limit = 9});
  run_until([&] { return tokens_.count(first) > 0; });
  clock_.ahead += std::chrono::seconds(10);
  EXPECT_GE(fleet_->wait_for_places(1), std::chrono::seconds(10)) << "as long as it has taken";
  fleet_->cancel(first);
  run_until([&] { return tokens_.count(second) > 0; });
  EXPECT_GE(fleet_->wait_for_places(2), std::chrono::seconds(20));
  clock_.ahead += std::chrono::seconds(2);
  fleet_->cancel(second);
  run_until([&] { return fleet_->free_count() == 1; });
  ASSERT_TRUE(step());
  clock_.ahead += std::chrono::seconds(1000);
  // (10 x 31/32 + 2) / (1 x 31/32 + 1) and what the steps have taken
  EXPECT_GE(fleet_->wait_for_places(1), std::chrono::milliseconds(5936));
  EXPECT_LT(fleet_->wait_for_places(1), std::chrono::seconds(500));
  fleet_->workers().drain(0);
  EXPECT_FALSE(fleet_->wait_for_places(1)) << "none has a place that could come free";
}

// ---- Deaths that are nobody's fault ----

// As by a daemon that ends what takes too much memory, which the first one's prompt may do.
TEST_F(DecoderStreamsTest, AStreamWhoseWorkersAreAlwaysKilledFailsAloneInTheEnd) {
  start("kill_on=7");
  const auto heavy = fleet_->submit({.ids = {7}, .token_limit = 3});
  const auto first = fleet_->submit({.ids = {30}, .token_limit = 3});
  const auto second = fleet_->submit({.ids = {40}, .token_limit = 3});
  run();
  EXPECT_EQ(failures_[heavy].substr(0, 61),
            "8 workers were ended before they had a token of this request,");
  EXPECT_TRUE(was_given_[heavy]);
  EXPECT_EQ(tokens_[first], counted(31, 3)) << failures_[first];
  EXPECT_EQ(tokens_[second], counted(41, 3)) << failures_[second];
}

// What an operator does to a worker is no death.
TEST_F(DecoderStreamsTest, RestartsByAnOperatorFailNoStream) {
  drain_limit_ = Duration{0};
  start("wait_at=0");
  run_until_ready();
  const auto id = fleet_->submit({.ids = {10}, .token_limit = 3});
  for (std::uint32_t restarts = 1; restarts <= 9; ++restarts) {
    run_until([&] { return fleet_->group_of(id).has_value(); });
    fleet_->workers().restart(0);
    run_until([&] { return fleet_->groups()[0].restart_count == restarts; });
  }
  ::setenv("COUNTING_WORKER", "", 1);
  fleet_->workers().restart(0);
  run();
  EXPECT_EQ(tokens_[id], counted(11, 3)) << failures_[id];
}

// One step sees that it is gone and starts the next one, which would answer for what it never had,
// in place of its canary.
TEST_F(DecoderStreamsTest, WhatIsCancelledWithADeadWorkerIsNotToldToTheNextOne) {
  asks_canary_ = true;
  start("wait_at=1");
  const auto id = fleet_->submit({.ids = {10}, .token_limit = 9});
  run_until([&] { return tokens_.count(id) > 0; });
  const auto pid = *fleet_->groups()[0].pid;
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  siginfo_t gone{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &gone, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(fleet_->cancel(id));
  ASSERT_TRUE(step());
  EXPECT_EQ(fleet_->groups()[0].restart_count, 1U) << "at once";
  run_until([&] { return fleet_->is_ready(); });
  EXPECT_EQ(fleet_->groups()[0].restart_count, 1U) << notices_;
}

// All that was asked for has come: the stream is at its end, and the worker is not trusted.
TEST_F(DecoderStreamsTest, AWorkerThatTellsMoreThanItWasAskedForIsEnded) {
  start("one_more");
  const auto id = fleet_->submit({.ids = {10}, .token_limit = 2});
  run();
  EXPECT_EQ(tokens_[id], counted(11, 2));
  EXPECT_EQ(ends_[id], FinishReason::Length);
  EXPECT_NE(notices_.find("the worker told more tokens than it was asked for"), std::string::npos)
      << notices_;
}

// A device may compute what is no number with a model that is sound.
TEST_F(DecoderStreamsTest, AStreamThatComesToNoNumberIsTriedOnAnotherWorker) {
  start("", 2);
  run_until_ready();
  ::setenv("COUNTING_WORKER", "nan_at=2", 1);
  ASSERT_EQ(::kill(*fleet_->groups()[0].pid, SIGKILL), 0);
  run_until([&] {
    const auto group = fleet_->groups()[0];
    return group.state == DecoderGroupView::State::Ready && group.restart_count == 1;
  });
  ::setenv("COUNTING_WORKER", "", 1);
  const auto first = fleet_->submit({.ids = {10}, .token_limit = 5});
  const auto second = fleet_->submit({.ids = {20}, .token_limit = 5});
  run();
  EXPECT_EQ(tokens_[first], counted(11, 5)) << "one of them began with the first worker";
  EXPECT_EQ(tokens_[second], counted(21, 5));
  EXPECT_TRUE(failures_.empty()) << failures_.begin()->second;
}

TEST_F(DecoderStreamsTest, AStreamThatComesToNoNumberOnTwoWorkersFails) {
  start("nan_at=2", 2);
  run_until_ready();
  const auto id = fleet_->submit({.ids = {10}, .token_limit = 5});
  run();
  EXPECT_EQ(tokens_[id], counted(11, 2));
  EXPECT_EQ(failures_[id], "the model's logits are not finite numbers");
}

// ---- Turns ----

// One place, and each stream counts 10 tokens: 1 and 9. Flow 1 has asked for four, flow 2 for one.
TEST_F(DecoderStreamsTest, StreamsOfTwoFlowsTakeTurns) {
  start("wait_at=1", 1, 1);
  std::vector<StreamId> ids;
  for (const FlowId flow : {1U, 1U, 1U, 1U, 2U}) {
    ids.push_back(fleet_->submit({.ids = {10}, .token_limit = 9, .flow = flow}));
  }
  for (const auto next : {ids[0], ids[4], ids[1], ids[2], ids[3]}) {
    run_until([&] { return !tokens_.empty(); });
    EXPECT_EQ(tokens_.begin()->first, next);
    fleet_->cancel(next);
    tokens_.clear();
  }
}

// What is cancelled before its turn has cost its flow nothing: both have asked for 10 tokens then.
TEST_F(DecoderStreamsTest, AStreamThatIsCancelledBeforeItsTurnIsNotCharged) {
  start("wait_at=1", 1, 1);
  std::vector<StreamId> ids;
  for (const FlowId flow : {1U, 2U, 2U, 2U}) {
    ids.push_back(fleet_->submit({.ids = {10}, .token_limit = 9, .flow = flow}));
  }
  EXPECT_FALSE(fleet_->cancel(ids[3]));
  EXPECT_FALSE(fleet_->cancel(ids[2]));
  ids[2] = fleet_->submit({.ids = {10}, .token_limit = 9, .flow = 2});
  ids[3] = fleet_->submit({.ids = {10}, .token_limit = 9, .flow = 1});
  for (const auto next : {ids[0], ids[1], ids[2], ids[3]}) {
    run_until([&] { return !tokens_.empty(); });
    EXPECT_EQ(tokens_.begin()->first, next);
    fleet_->cancel(next);
    tokens_.clear();
  }
}

TEST_F(DecoderStreamsTest, ALostStreamHasItsTurnAgain) {
  start("wait_at=1", 1, 1);
  std::vector<StreamId> ends;
  on_end_ = [&](StreamId id) { ends.push_back(id); };
  std::vector<StreamId> ids;
  for (const FlowId flow : {1U, 1U, 2U}) {
    ids.push_back(fleet_->submit({.ids = {10}, .token_limit = 3, .flow = flow}));
  }
  run_until([&] { return tokens_.count(ids[0]) > 0; });
  ::setenv("COUNTING_WORKER", "", 1);
  ASSERT_EQ(::kill(*fleet_->groups()[0].pid, SIGKILL), 0);
  run();
  EXPECT_EQ(ends, (std::vector<StreamId>{ids[0], ids[2], ids[1]}));
  for (const auto id : ids) EXPECT_EQ(tokens_[id], counted(11, 3));
}

}  // namespace
}  // namespace muster

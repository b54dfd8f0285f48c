// Real processes (stand_ins/counting_worker): the next token is the last one plus one.
#include "coordinator/decoder_fleet.h"

#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/decoder_fleet_fixture.h"

namespace muster {
namespace {

TEST_F(DecoderFleetTest, StreamsOfTwoWorkersEndByLimitAndStop) {
  start("", 2);
  EXPECT_FALSE(fleet_->is_ready());
  EXPECT_EQ(fleet_->length_max(), 0U);
  const auto limited = fleet_->submit({.ids = {10}, .token_limit = 4});
  const auto stopped = fleet_->submit({.ids = {20}, .token_limit = 40, .stop_ids = {23}});
  EXPECT_EQ(fleet_->waiting_count(), 2U);
  run();
  EXPECT_EQ(tokens_[limited], counted(11, 4));
  EXPECT_EQ(ends_[limited], FinishReason::Length);
  EXPECT_EQ(tokens_[stopped], counted(21, 2));
  EXPECT_EQ(ends_[stopped], FinishReason::Stop);
  EXPECT_EQ(fleet_->length_max(), 100U);
  EXPECT_GT(change_count_, 0);
}

TEST_F(DecoderFleetTest, StreamsAreSharedOutAndTheRestWaits) {
  start("wait_at=1", 2, 2);
  run_until([&] {
    const auto groups = fleet_->groups();
    return groups[0].state == DecoderGroupView::State::Ready &&
           groups[1].state == DecoderGroupView::State::Ready;
  });
  std::vector<StreamId> ids;
  for (std::uint32_t i = 0; i < 5; ++i) {
    ids.push_back(fleet_->submit({.ids = {100 * i}, .token_limit = 9}));
  }
  run_until([&] { return tokens_.size() == 4; });
  EXPECT_EQ(fleet_->groups()[0].stream_count, 2U);
  EXPECT_EQ(fleet_->groups()[1].stream_count, 2U);
  EXPECT_EQ(fleet_->waiting_count(), 1U);
  EXPECT_EQ(tokens_.count(ids[4]), 0U) << "the last one waits";
  EXPECT_FALSE(fleet_->cancel(fleet_->submit({.ids = {500}, .token_limit = 9})));
  EXPECT_TRUE(fleet_->cancel(ids[1])) << "a worker had it";
  run_until([&] { return tokens_.count(ids[4]) > 0; });
  EXPECT_EQ(tokens_[ids[4]], counted(401, 1));
  EXPECT_TRUE(ends_.empty());
}

TEST_F(DecoderFleetTest, AStreamSurvivesItsWorkersWithoutATokenTwiceOrMissing) {
  for (const auto* order : {"die_after=5", "kill_after=3", "die_after=1"}) {
    SCOPED_TRACE(order);
    tokens_.clear();
    start(order, 2);
    const auto first = fleet_->submit({.ids = {1, 2, 3}, .token_limit = 16});
    const auto second = fleet_->submit({.ids = {500}, .token_limit = 7});
    const auto third = fleet_->submit({.ids = {600}, .token_limit = 7});
    run();
    EXPECT_EQ(tokens_[first], counted(4, 16));
    EXPECT_EQ(tokens_[second], counted(501, 7));
    EXPECT_EQ(tokens_[third], counted(601, 7));
    EXPECT_TRUE(failures_.empty()) << failures_.begin()->second;
  }
}

TEST_F(DecoderFleetTest, ALostEndIsKnownAllTheSame) {
  start("lose_end");
  const auto limited = fleet_->submit({.ids = {10}, .token_limit = 4});
  const auto full = fleet_->submit({.ids = {900}, .token_limit = 500});
  run();
  EXPECT_EQ(tokens_[limited], counted(11, 4));
  EXPECT_EQ(tokens_[full].size(), 99U);  // with the prompt 100
  EXPECT_EQ(ends_[limited], FinishReason::Length);
  EXPECT_EQ(ends_[full], FinishReason::Length);
}

// The next worker was never asked for it, and so has nothing to answer for.
TEST_F(DecoderFleetTest, AStreamThatIsCancelledWhileItsWorkerIsLostIsOwedByNone) {
  start("lose_end");
  const auto first = fleet_->submit({.ids = {10}, .token_limit = 4});
  const auto second = fleet_->submit({.ids = {300}, .token_limit = 50});
  on_end_ = [&](StreamId id) {
    if (id == first) fleet_->cancel(second);
  };
  // Until a worker is ready of which nothing is expected.
  run_until([&] {
    return ends_.count(first) > 0 && fleet_->groups()[0].state == DecoderGroupView::State::Ready &&
           fleet_->next_deadline() == TimePoint::max();
  });
  EXPECT_LT(tokens_[second].size(), 50U) << "it was to be cancelled while it ran";
  EXPECT_EQ(ends_.count(second), 0U);
}

TEST_F(DecoderFleetTest, APromptThatKillsWorkersFailsAndTakesNoOtherWithIt) {
  start("poison=7");
  const auto well = fleet_->submit({.ids = {20}, .token_limit = 3});
  const auto poison = fleet_->submit({.ids = {7}, .token_limit = 3});
  const auto other = fleet_->submit({.ids = {30}, .token_limit = 3});
  run();
  EXPECT_EQ(tokens_[well], counted(21, 3));
  EXPECT_EQ(tokens_[other], counted(31, 3));
  EXPECT_EQ(failures_.size(), 1U);
  EXPECT_TRUE(was_given_[poison]);
  EXPECT_NE(failures_[poison].find("3 workers ended with this request"), std::string::npos)
      << failures_[poison];
  EXPECT_NE(notices_.find("signal 6 (Aborted)"), std::string::npos) << notices_;
}

// The worker had told of a step of the prompt each time.
TEST_F(DecoderFleetTest, AStepWithoutATokenEndsNoBackOff) {
  start("poison=7");
  fleet_->submit({.ids = {7}, .token_limit = 3});
  run();
  // Its reply is over when the third worker dies, and the restart is told when that process is
  // gone.
  run_until([&] { return fleet_->groups()[0].restart_count == 3; });
  EXPECT_NE(notices_.find("restart in 0.1 s"), std::string::npos) << notices_;
}

TEST_F(DecoderFleetTest, AWorkerThatHangsIsEnded) {
  silence_most_ = std::chrono::seconds(1);
  start("hang_on=7");
  const auto hung = fleet_->submit({.ids = {7}, .token_limit = 3});
  const auto other = fleet_->submit({.ids = {30}, .token_limit = 3});
  run();
  EXPECT_EQ(tokens_[other], counted(31, 3));
  EXPECT_NE(failures_[hung].find("it has said nothing for too long"), std::string::npos)
      << failures_[hung];
}

TEST_F(DecoderFleetTest, ACancelledStreamIsToldOfNoMoreEvenFromWithinItsToken) {
  start("");
  on_token_ = [&](StreamId id) {
    if (tokens_[id].size() == 2) fleet_->cancel(id);
  };
  const auto cancelled = fleet_->submit({.ids = {10}, .token_limit = 50});
  run();
  const auto later = fleet_->submit({.ids = {700}, .token_limit = 1});
  EXPECT_FALSE(fleet_->cancel(cancelled)) << "it is not there any more";
  run();
  EXPECT_EQ(tokens_[cancelled], counted(11, 2));
  EXPECT_EQ(tokens_[later], counted(701, 1));
  EXPECT_EQ(ends_.count(cancelled), 0U);
}

TEST_F(DecoderFleetTest, WhatTheWorkerRefusesFailsAlone) {
  start("");
  const auto refused = fleet_->submit({.ids = counted(0, 100), .token_limit = 1});
  const auto taken = fleet_->submit({.ids = {5}, .token_limit = 1});
  run();
  EXPECT_EQ(failures_[refused], "no room for a reply");
  EXPECT_FALSE(was_given_[refused]) << "nothing of it was computed";
  EXPECT_EQ(tokens_[taken], counted(6, 1));
}

TEST_F(DecoderFleetTest, ADecoderThatCannotBeLoadedFailsAllStreams) {
  start("fail_load");
  const auto early = fleet_->submit({.ids = {5}, .token_limit = 1});
  run();
  const auto late = fleet_->submit({.ids = {5}, .token_limit = 1});
  run();
  EXPECT_EQ(failures_[early], "told not to load");
  EXPECT_FALSE(was_given_[early]);
  EXPECT_EQ(failures_[late], "told not to load");
  EXPECT_EQ(fleet_->groups()[0].state, DecoderGroupView::State::Failed);
  EXPECT_FALSE(fleet_->is_ready());
}

// The client of each goes before the limit.
TEST_F(DecoderFleetTest, AWorkerThatHangsIsFoundThoughWhatItHadIsCancelled) {
  silence_most_ = std::chrono::milliseconds(300);
  start("hang_on=7", 1, 2);
  run_until([&] { return fleet_->is_ready(); });
  while (notices_.find("it has said nothing for too long") == std::string::npos) {
    const auto id = fleet_->submit({.ids = {7}, .token_limit = 3});
    const auto end = clock_.now() + std::chrono::milliseconds(100);
    run_until([&] { return clock_.now() >= end; });
    fleet_->cancel(id);
    ASSERT_LT(notices_.size(), 10'000U) << notices_;
  }
  const auto well = fleet_->submit({.ids = {30}, .token_limit = 3});
  run();
  EXPECT_EQ(tokens_[well], counted(31, 3));
}

TEST_F(DecoderFleetTest, AWorkerIsNotGivenMoreThanItAnswersFor) {
  start("hang_on=7", 1, 2);
  run_until([&] { return fleet_->is_ready(); });
  for (int i = 0; i < 2; ++i) {
    const auto id = fleet_->submit({.ids = {7}, .token_limit = 3});
    run_until([&] { return fleet_->waiting_count() == 0; });
    EXPECT_TRUE(fleet_->cancel(id));
  }
  const auto next = fleet_->submit({.ids = {30}, .token_limit = 3});
  ASSERT_TRUE(step());
  EXPECT_EQ(fleet_->waiting_count(), 1U);
  EXPECT_FALSE(fleet_->cancel(next));
}

TEST_F(DecoderFleetTest, AWorkerThatDiesAtEachLoadIsNotWaitedForAndIsTriedAgain) {
  start("die_at_load", 2);
  const auto early = fleet_->submit({.ids = {5}, .token_limit = 1});
  run();
  EXPECT_NE(failures_[early].find("signal 6 (Aborted)"), std::string::npos) << failures_[early];
  EXPECT_FALSE(fleet_->can_work());
  const auto late = fleet_->submit({.ids = {5}, .token_limit = 1});
  run();
  EXPECT_EQ(failures_.count(late), 1U);
  ::setenv("COUNTING_WORKER", "", 1);
  run_until([&] { return fleet_->is_ready(); });
  EXPECT_TRUE(fleet_->can_work());
  const auto well = fleet_->submit({.ids = {5}, .token_limit = 1});
  run();
  EXPECT_EQ(tokens_[well], counted(6, 1));
}

TEST_F(DecoderFleetTest, AWorkerThatHangsAtItsLoadIsEnded) {
  load_most_ = std::chrono::milliseconds(300);
  start("hang_at_load");
  const auto stream = fleet_->submit({.ids = {5}, .token_limit = 1});
  run();
  EXPECT_NE(failures_[stream].find("it has said nothing for too long"), std::string::npos)
      << failures_[stream];
}

TEST_F(DecoderFleetTest, AWorkerThatLoadsAnotherModelThanTheFirstIsRefused) {
  start("length_max=50 die_after=3");
  run_until([&] { return fleet_->is_ready(); });
  ::setenv("COUNTING_WORKER", "length_max=40", 1);
  const auto stream = fleet_->submit({.ids = {10}, .token_limit = 9});
  run();
  EXPECT_EQ(tokens_[stream], counted(11, 3));
  EXPECT_NE(failures_[stream].find("counting has changed since it was loaded first; to serve what "
                                   "is there now, unload the model and load it again"),
            std::string::npos)
      << failures_[stream];
}

// A run has an end, and whoever began it can begin it again.
TEST_F(DecoderFleetTest, AnotherModelThanTheFirstEndsARunAndNoServerIsSpokenOf) {
  is_change_fatal_ = true;
  start("length_max=50 die_after=3");
  run_until([&] { return fleet_->is_ready(); });
  ::setenv("COUNTING_WORKER", "length_max=40", 1);
  const auto stream = fleet_->submit({.ids = {10}, .token_limit = 9});
  const auto end = clock_.now() + kPatience;
  Status stepped = Done{};
  while (stepped && clock_.now() < end) stepped = step();
  ASSERT_FALSE(stepped);
  EXPECT_EQ(stepped.error().kind, ErrorKind::Corrupt);
  EXPECT_EQ(stepped.error().message,
            "counting has changed since it was loaded first, and the replies of a run must be of "
            "one model");
  EXPECT_EQ(tokens_[stream], counted(11, 3));
}

// Its memory has begun to fail, or its file was changed by one that is as large.
TEST_F(DecoderFleetTest, AWorkerThatAnswersItsCanaryOtherwiseIsGivenNoStream) {
  asks_canary_ = true;
  start("", 2);
  run_until([&] {
    const auto groups = fleet_->groups();
    return groups[0].state == DecoderGroupView::State::Ready &&
           groups[1].state == DecoderGroupView::State::Ready;
  });
  ::setenv("COUNTING_WORKER", "wrong_canary", 1);
  ::kill(*fleet_->groups()[0].pid, SIGKILL);
  run_until(
      [&] { return notices_.find("it gave a wrong answer to its canary") != std::string::npos; });
  EXPECT_FALSE(fleet_->groups()[0].state == DecoderGroupView::State::Ready);
  const auto id = fleet_->submit({.ids = {10}, .token_limit = 4});
  run();
  EXPECT_EQ(tokens_[id], counted(11, 4)) << "the other one works";
  EXPECT_EQ(fleet_->groups()[1].finished_count, 1U);
}

// It ends its streams so soon that it is the least busy one all the time.
TEST_F(DecoderFleetTest, AWorkerThatFailsAtWhatAnotherOneDoesIsStartedAgain) {
  start("", 2);
  const auto is_ready = [&](std::size_t index, std::uint32_t restart_count) {
    const auto group = fleet_->groups()[index];
    return group.state == DecoderGroupView::State::Ready && group.restart_count == restart_count;
  };
  run_until([&] { return is_ready(0, 0) && is_ready(1, 0); });
  ::setenv("COUNTING_WORKER", "fail_at=2", 1);
  ::kill(*fleet_->groups()[0].pid, SIGKILL);
  run_until([&] { return is_ready(0, 1); });
  ::setenv("COUNTING_WORKER", "", 1);
  const auto first = fleet_->submit({.ids = {10}, .token_limit = 5});
  const auto second = fleet_->submit({.ids = {20}, .token_limit = 5});
  run();
  EXPECT_EQ(tokens_[first], counted(11, 5)) << "two of the first worker, three of the other one";
  EXPECT_EQ(tokens_[second], counted(21, 5));
  EXPECT_TRUE(failures_.empty());
  run_until([&] { return is_ready(0, 2); });
  EXPECT_NE(notices_.find("it failed at a reply that another worker has gone on with"),
            std::string::npos)
      << notices_;
}

TEST_F(DecoderFleetTest, AStreamAtWhichTwoWorkersFailFailsAndIsNotTheirFault) {
  start("fail_at=2", 2);
  run_until([&] {
    const auto groups = fleet_->groups();
    return groups[0].state == DecoderGroupView::State::Ready &&
           groups[1].state == DecoderGroupView::State::Ready;
  });
  const auto id = fleet_->submit({.ids = {10}, .token_limit = 5});
  run();
  EXPECT_EQ(tokens_[id], counted(11, 2));
  EXPECT_EQ(failures_[id], "told to fail here");
  EXPECT_TRUE(was_given_[id]);
  for (const auto& group : fleet_->groups()) {
    EXPECT_EQ(group.restart_count, 0U);
    EXPECT_EQ(group.state, DecoderGroupView::State::Ready);
  }
}

TEST_F(DecoderFleetTest, WhatEachWorkerHasDoneIsCountedOverItsLives) {
  start("die_after=4");
  const auto first = fleet_->submit({.ids = {10}, .token_limit = 6});
  EXPECT_EQ(fleet_->group_of(first), std::nullopt) << "it waits";
  std::optional<std::size_t> group;
  on_token_ = [&](StreamId id) { group = fleet_->group_of(id); };
  run();
  EXPECT_EQ(group, 0U);
  EXPECT_EQ(fleet_->group_of(first), std::nullopt) << "it has ended";
  EXPECT_EQ(fleet_->groups()[0].token_count, 6U);
  EXPECT_EQ(fleet_->groups()[0].finished_count, 1U);
  EXPECT_EQ(fleet_->groups()[0].restart_count, 1U);
}

TEST_F(DecoderFleetTest, AWorkerOfAnotherBuildThatIsStartedLaterEndsNoOther) {
  start("die_after=3", 2);
  run_until([&] {
    const auto groups = fleet_->groups();
    return groups[0].state == DecoderGroupView::State::Ready &&
           groups[1].state == DecoderGroupView::State::Ready;
  });
  ::setenv("COUNTING_WORKER", "other_build", 1);
  const auto stream = fleet_->submit({.ids = {10}, .token_limit = 5});
  run();
  EXPECT_EQ(tokens_[stream], counted(11, 5));
  run_until([&] { return notices_.find("is of another build") != std::string::npos; });
  EXPECT_TRUE(fleet_->is_ready());
}

TEST_F(DecoderFleetTest, WhatAWorkerHadInItsCacheIsTold) {
  for (const bool has_cache : {true, false}) {
    has_prefix_cache_ = has_cache;
    cached_.clear();
    start("");
    std::vector<StreamId> ids;
    for (const std::uint64_t scope : {1U, 1U, 2U}) {
      ids.push_back(
          fleet_->submit({.ids = counted(0, 40), .token_limit = 1, .prefix_scope = scope}));
      run();
    }
    // Two blocks of 16; the last id of 40 is computed in any case.
    EXPECT_EQ(cached_, (std::map<StreamId, std::uint32_t>{
                           {ids[0], 0}, {ids[1], has_cache ? 32U : 0U}, {ids[2], 0}}));
    tokens_.clear();
  }
}

TEST_F(DecoderFleetTest, AmongEquallyBusyWorkersTheOneThatHadItsBeginningGetsAStream) {
  start("wait_at=1", 2);
  run_until([&] {
    const auto groups = fleet_->groups();
    return groups[0].state == DecoderGroupView::State::Ready &&
           groups[1].state == DecoderGroupView::State::Ready;
  });
  const auto first = fleet_->submit({.ids = counted(0, 20), .token_limit = 9});
  const auto second = fleet_->submit({.ids = counted(500, 20), .token_limit = 9});
  run_until([&] { return tokens_.size() == 2; });
  EXPECT_EQ(fleet_->groups()[0].stream_count, 1U);
  EXPECT_EQ(fleet_->groups()[1].stream_count, 1U);
  fleet_->cancel(first);
  fleet_->cancel(second);
  run_until([&] { return fleet_->next_deadline() == TimePoint::max(); });  // they are answered for
  // Both are idle; without its beginning the first one would get it.
  const auto again = fleet_->submit({.ids = counted(500, 30), .token_limit = 9});
  run_until([&] { return tokens_.count(again) > 0; });
  EXPECT_EQ(fleet_->groups()[1].stream_count, 1U);
  EXPECT_EQ(cached_[again], 16U);
  // Now the other one is less busy, and that goes first.
  const auto more = fleet_->submit({.ids = counted(500, 40), .token_limit = 9});
  run_until([&] { return tokens_.count(more) > 0; });
  EXPECT_EQ(fleet_->groups()[0].stream_count, 1U);
  EXPECT_EQ(cached_[more], 0U);
}

// Its next process has an empty cache.
TEST_F(DecoderFleetTest, WhatAWorkerHadBeforeItsDrainCountsNoMore) {
  start("wait_at=1", 2);
  const auto is_ready = [&](std::size_t group) {
    return fleet_->groups()[group].state == DecoderGroupView::State::Ready;
  };
  run_until([&] { return is_ready(0) && is_ready(1); });
  const auto first = fleet_->submit({.ids = counted(0, 20), .token_limit = 9});
  const auto second = fleet_->submit({.ids = counted(500, 20), .token_limit = 9});
  run_until([&] { return tokens_.size() == 2; });
  fleet_->cancel(first);
  fleet_->cancel(second);
  fleet_->workers().drain(1);
  run_until([&] { return fleet_->groups()[1].state == DecoderGroupView::State::Drained; });
  fleet_->workers().resume(1);
  run_until([&] { return is_ready(1) && fleet_->next_deadline() == TimePoint::max(); });
  const auto again = fleet_->submit({.ids = counted(500, 30), .token_limit = 9});
  run_until([&] { return tokens_.count(again) > 0; });
  EXPECT_EQ(fleet_->groups()[0].stream_count, 1U) << "the first of equals";
  EXPECT_EQ(cached_[again], 0U);
}

// Set ahead between two steps, as after a pause of the whole container.
TEST_F(DecoderFleetTest, APauseOfTheParentIsNoSilenceOfAWorker) {
  start("wait_at=1");
  const auto stream = fleet_->submit({.ids = {10}, .token_limit = 5});
  run_until([&] { return tokens_[stream].size() == 1; });
  clock_.ahead += std::chrono::minutes(10);
  ASSERT_TRUE(step());
  EXPECT_EQ(notices_, "");
  EXPECT_EQ(fleet_->groups()[0].state, DecoderGroupView::State::Ready);
}

TEST_F(DecoderFleetTest, ADrainedWorkerEndsItsStreamsAndIsGivenNoMore) {
  start("wait_at=2", 2);
  run_until([&] {
    const auto groups = fleet_->groups();
    return groups[0].state == DecoderGroupView::State::Ready &&
           groups[1].state == DecoderGroupView::State::Ready;
  });
  const auto first = fleet_->submit({.ids = {10}, .token_limit = 9});
  run_until([&] { return tokens_[first].size() == 2; });
  ASSERT_EQ(fleet_->groups()[0].stream_count, 1U);
  fleet_->workers().drain(0);
  const auto second = fleet_->submit({.ids = {20}, .token_limit = 9});
  const auto third = fleet_->submit({.ids = {30}, .token_limit = 9});
  run_until([&] { return tokens_[second].size() == 2 && tokens_[third].size() == 2; });
  EXPECT_EQ(fleet_->groups()[0].stream_count, 1U);
  EXPECT_EQ(fleet_->groups()[0].state, DecoderGroupView::State::Draining);
  EXPECT_EQ(fleet_->groups()[1].stream_count, 2U);
  fleet_->cancel(first);
  run_until([&] { return fleet_->groups()[0].state == DecoderGroupView::State::Drained; });
  EXPECT_TRUE(failures_.empty());

  ::setenv("COUNTING_WORKER", "", 1);
  fleet_->workers().resume(0);
  run_until([&] { return fleet_->groups()[0].state == DecoderGroupView::State::Ready; });
  const auto fourth = fleet_->submit({.ids = {40}, .token_limit = 3});
  run_until([&] { return ends_.count(fourth) > 0; });
  EXPECT_EQ(tokens_[fourth], counted(41, 3));
}

// The drain is over before the reply is: the other worker goes on where the first one was.
TEST_F(DecoderFleetTest, AtTheDrainLimitAStreamGoesOnElsewhere) {
  drain_limit_ = Duration{0};
  start("wait_at=2", 2);
  const auto stream = fleet_->submit({.ids = {10}, .token_limit = 9});
  run_until([&] { return tokens_[stream].size() == 2; });
  const auto has_it = [&](std::size_t group) { return fleet_->groups()[group].stream_count > 0; };
  const std::size_t group = has_it(0) ? 0 : 1;
  run_until([&] { return fleet_->groups()[1 - group].state == DecoderGroupView::State::Ready; });
  fleet_->workers().drain(group);
  run_until([&] { return has_it(1 - group); });
  EXPECT_EQ(tokens_[stream], counted(11, 2)) << "what it has said is not said again";
  EXPECT_TRUE(failures_.empty());
}

// Of 4 replies every worker dies in the middle, and each is started again by an operator meanwhile.
TEST_F(DecoderFleetTest, ARestartAmidDeathsLosesNoToken) {
  start("die_after=7", 2);
  std::vector<StreamId> ids;
  for (std::uint32_t i = 0; i < 4; ++i) {
    ids.push_back(fleet_->submit({.ids = {100 * i}, .token_limit = 20}));
  }
  std::size_t count = 0;
  on_token_ = [&](StreamId) {
    if (++count % 16 == 0) fleet_->workers().restart(count / 16 % 2);
  };
  run();
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(tokens_[ids[i]], counted(100 * i + 1, 20));
  EXPECT_TRUE(failures_.empty()) << failures_.begin()->second;
}

TEST_F(DecoderFleetTest, WhereEveryWorkerIsDrainedStreamsFailAndTheResumedOneWorks) {
  start("", 1);
  run_until([&] { return fleet_->is_ready(); });
  fleet_->workers().drain(0);
  const auto refused = fleet_->submit({.ids = {5}, .token_limit = 1});
  run();
  EXPECT_EQ(failures_[refused], "every device is drained");
  EXPECT_TRUE(fleet_->is_to_rest());
  fleet_->workers().resume(0);
  const auto taken = fleet_->submit({.ids = {5}, .token_limit = 1});
  run();
  EXPECT_EQ(tokens_[taken], counted(6, 1));
}

// Several replies of one request: where one fails, its owner cancels those that are running. Their
// worker, which says nothing more of its own, hears of it at once and drains.
TEST_F(DecoderFleetTest, WhatIsCancelledAsAnotherFailsIsToldAtOnce) {
  drain_limit_ = std::chrono::hours(1);
  start("wait_at=1", 1, 1);
  const auto running = fleet_->submit({.ids = {10}, .token_limit = 9});
  run_until([&] { return tokens_[running].size() == 1; });
  const auto waiting = fleet_->submit({.ids = {20}, .token_limit = 9});
  on_failed_ = [&](StreamId) { fleet_->cancel(running); };
  fleet_->workers().drain(0);
  while (fleet_->groups()[0].state != DecoderGroupView::State::Drained) {
    step_when_due();
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(failures_[waiting], "every device is drained");
  EXPECT_EQ(ends_.count(running), 0U);
}

TEST_F(DecoderFleetTest, AfterAStopNoProcessIsLeft) {
  start("", 2);
  run_until([&] { return fleet_->is_ready(); });
  const auto pid = fleet_->groups()[0].pid;
  ASSERT_TRUE(pid);
  fleet_->workers().stop();
  run_until([&] { return fleet_->is_stopped(); });
  EXPECT_NE(::kill(*pid, 0), 0) << "it was waited for";
}

TEST_F(DecoderFleetTest, AWorkerOfAnotherBuildIsTheEnd) {
  start("other_build");
  Status outcome = Done{};
  while (outcome) outcome = step();
  EXPECT_EQ(outcome.error().kind, ErrorKind::Unsupported);
  EXPECT_NE(outcome.error().message.find("is of another build: it is 0.0.1 (other)"),
            std::string::npos)
      << outcome.error().message;
}

}  // namespace
}  // namespace muster

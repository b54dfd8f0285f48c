// The lives of workers alone (decoder_workers_fixture.h). Starts that fail again and again are in
// decoder_starts_test.cpp.

#include <vector>

#include "coordinator/decoder_workers_fixture.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(DecoderWorkersTest, AWorkerTakesStreamsOnceItHasLoaded) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  EXPECT_EQ(state(0), State::Loading);
  EXPECT_TRUE(workers_->can_work());
  EXPECT_FALSE(workers_->takes_streams(0));
  ASSERT_NO_FATAL_FAILURE(load(0));
  EXPECT_TRUE(workers_->takes_streams(0));
  EXPECT_TRUE(workers_->is_ready());
  EXPECT_EQ(workers_->length_max(), 100U);
  ASSERT_TRUE(say(0, MessageType::Tokens, {}));
  EXPECT_EQ(frame_count_, 1U) << "what is about streams is the client's";
}

TEST_F(DecoderWorkersTest, ADrainLetsStreamsEndAndThenTheProcess) {
  ASSERT_NO_FATAL_FAILURE(make_ready(2));
  owed_[0] = 1;
  workers_->drain(0);
  pass(seconds(1));
  EXPECT_EQ(state(0), State::Draining);
  EXPECT_FALSE(workers_->takes_streams(0));
  EXPECT_TRUE(processes_->groups[0].endings.empty()) << "it computes";
  owed_[0] = 0;
  pass(seconds(1));
  ASSERT_EQ(processes_->groups[0].endings, std::vector{GroupEnding::EndOfStream});
  die(0, kExited);
  EXPECT_EQ(state(0), State::Drained);
  EXPECT_EQ(workers_->view(0).reason, "drained");
  EXPECT_EQ(workers_->view(0).pid, std::nullopt);
  pass(seconds(60));
  EXPECT_EQ(start_count(0), 1U);
  EXPECT_TRUE(workers_->can_work()) << "the other one does";

  workers_->resume(0);
  pass(milliseconds(0));
  EXPECT_EQ(start_count(0), 2U);
  ASSERT_NO_FATAL_FAILURE(load(0));
  EXPECT_EQ(state(0), State::Ready);
}

TEST_F(DecoderWorkersTest, WhatIsLeftAtTheDrainLimitIsLostToOthersAndNobodysFault) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  owed_[0] = 2;
  workers_->drain(0);
  EXPECT_EQ(workers_->next_deadline(), clock_.now() + seconds(30));
  pass(seconds(30));
  ASSERT_EQ(losses_.size(), 1U);
  EXPECT_FALSE(losses_[0].second.is_own_fault);
  EXPECT_EQ(losses_[0].second.reason, "drained");
  EXPECT_FALSE(workers_->can_work());
  EXPECT_EQ(workers_->cannot_work_error().message, "every device is drained");
}

TEST_F(DecoderWorkersTest, AWorkerThatDiesGivesItsStreamsAwayBeforeItIsGone) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  owed_[0] = 3;
  workers_->on_stream_end(0, kKilled);
  ASSERT_EQ(losses_.size(), 1U);
  EXPECT_FALSE(losses_[0].second.is_own_fault);
  EXPECT_EQ(losses_[0].second.reason, kKilled.reason);
  EXPECT_EQ(start_count(0), 1U) << "it is not gone yet";
  EXPECT_EQ(workers_->view(0).reason, "its worker ended with signal 9 (Killed) from outside");
  die(0, kKilled);
  EXPECT_NE(notices_.find("; it had 3 replies, restart "), std::string::npos) << notices_;
}

// Whoever reads of its end reads that it is back; its first start is no news.
TEST_F(DecoderWorkersTest, TheLogSaysThatAWorkerIsBack) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  EXPECT_EQ(notices_, "");
  workers_->on_stream_end(0, kKilled);
  die(0, kKilled);
  pass(seconds(1));
  EXPECT_EQ(notices_.find("answers as it should"), std::string::npos) << notices_;
  ASSERT_NO_FATAL_FAILURE(load(0));
  EXPECT_NE(notices_.find("its new worker answers as it should"), std::string::npos) << notices_;
}

TEST_F(DecoderWorkersTest, AWorkerThatDiesWhileItDrainsIsNotStartedAgain) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  owed_[0] = 1;
  workers_->drain(0);
  die(0, kKilled);
  EXPECT_EQ(state(0), State::Drained);
  ASSERT_EQ(losses_.size(), 1U);
  EXPECT_FALSE(losses_[0].second.is_own_fault);
  pass(seconds(60));
  EXPECT_EQ(start_count(0), 1U);
}

TEST_F(DecoderWorkersTest, AResumeBeforeItHasEndedChangesNothingForItsStreams) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  owed_[0] = 1;
  workers_->drain(0);
  pass(seconds(1));
  workers_->resume(0);
  EXPECT_TRUE(workers_->takes_streams(0));
  pass(seconds(40));  // beyond the drain's limit
  EXPECT_TRUE(processes_->groups[0].endings.empty());
}

TEST_F(DecoderWorkersTest, AResumeWhileItEndsStartsItWhenItHas) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  workers_->drain(0);
  pass(milliseconds(0));
  ASSERT_EQ(processes_->groups[0].endings.size(), 1U);
  workers_->resume(0);
  EXPECT_TRUE(workers_->can_work());
  die(0, kExited);
  pass(milliseconds(0));
  EXPECT_EQ(start_count(0), 2U);
}

TEST_F(DecoderWorkersTest, ARestartDrainsAndStartsAgainAtOnce) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  owed_[0] = 1;
  workers_->restart(0);
  pass(seconds(1));
  EXPECT_EQ(state(0), State::Draining);
  EXPECT_TRUE(workers_->view(0).is_asked_for);
  EXPECT_TRUE(workers_->can_work()) << "it comes back: what waits need not fail";
  owed_[0] = 0;
  pass(milliseconds(0));
  die(0, kExited);
  pass(milliseconds(0));
  EXPECT_EQ(start_count(0), 2U);
  ASSERT_NO_FATAL_FAILURE(load(0));
  EXPECT_EQ(state(0), State::Ready);
  EXPECT_FALSE(workers_->view(0).is_asked_for);
}

TEST_F(DecoderWorkersTest, AWorkerThatIsKilledWhileItIsToStartAgainDoesSoAtOnce) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  owed_[0] = 1;
  workers_->restart(0);
  die(0, kAborted);
  pass(milliseconds(0));
  EXPECT_EQ(start_count(0), 2U);
}

// Its process has not ended yet: nobody waits until it has by itself.
TEST_F(DecoderWorkersTest, OneThatCouldNotLoadIsStartedAgainAtOnceWhenItIsAskedFor) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  ASSERT_NO_FATAL_FAILURE(fail_load(0));
  EXPECT_EQ(state(0), State::Failed);
  EXPECT_EQ(workers_->view(0).failure_kind, ErrorKind::Corrupt);
  EXPECT_FALSE(workers_->can_work());
  EXPECT_EQ(workers_->cannot_work_error().message, "no weights");
  pass(milliseconds(0));
  EXPECT_EQ(start_count(0), 1U) << "not by itself";

  workers_->restart(0);
  EXPECT_TRUE(workers_->can_work()) << "from the moment that it is asked for";
  EXPECT_EQ(workers_->view(0).failure_kind, std::nullopt);
  EXPECT_EQ(processes_->groups[0].endings.back(), GroupEnding::Kill);
  die(0, kKilled);
  pass(milliseconds(0));
  EXPECT_EQ(start_count(0), 2U);
  ASSERT_NO_FATAL_FAILURE(load(0));
  EXPECT_TRUE(workers_->is_ready());
}

TEST_F(DecoderWorkersTest, OneThatCouldNotLoadAndIsGoneIsStartedAtOnceToo) {
  ASSERT_NO_FATAL_FAILURE(make(2));
  ASSERT_NO_FATAL_FAILURE(load(1));
  ASSERT_NO_FATAL_FAILURE(fail_load(0));
  die(0, kExited);
  EXPECT_EQ(state(0), State::Failed);
  workers_->restart(0);
  EXPECT_TRUE(workers_->takes_streams(1)) << "the other one goes on";
  pass(milliseconds(0));
  EXPECT_EQ(start_count(0), 2U);
  EXPECT_EQ(state(0), State::Loading);
}

TEST_F(DecoderWorkersTest, OneWithoutMemoryForItsLoadIsStartedAgainByItself) {
  options_.waits_for_memory = true;
  ASSERT_NO_FATAL_FAILURE(make(1));
  for (const int pause : {1, 2}) {
    ASSERT_NO_FATAL_FAILURE(fail_load(0, ErrorKind::ResourceExhausted));
    EXPECT_EQ(state(0), State::Ended);
    EXPECT_EQ(workers_->view(0).reason, "no weights");
    EXPECT_TRUE(workers_->view(0).waits_for_memory);
    EXPECT_FALSE(workers_->can_work()) << "no stream waits for it";
    const auto count = start_count(0);
    die(0, kExited);
    EXPECT_EQ(workers_->next_deadline(), clock_.now() + seconds(pause));
    pass(seconds(pause) - milliseconds(1));
    EXPECT_EQ(start_count(0), count);
    pass(milliseconds(1));
    EXPECT_EQ(start_count(0), count + 1);
    EXPECT_EQ(state(0), State::Loading);
    EXPECT_TRUE(workers_->view(0).waits_for_memory) << "until it has loaded";
    EXPECT_FALSE(workers_->can_work());
  }
  ASSERT_NO_FATAL_FAILURE(load(0));
  EXPECT_TRUE(workers_->is_ready());
  EXPECT_FALSE(workers_->view(0).waits_for_memory);
}

TEST_F(DecoderWorkersTest, WorkWithAnEndDoesNotWaitForMemoryAndAnotherFailureIsNotTriedAgain) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  ASSERT_NO_FATAL_FAILURE(fail_load(0, ErrorKind::ResourceExhausted));
  EXPECT_EQ(state(0), State::Failed);

  options_.waits_for_memory = true;
  ASSERT_NO_FATAL_FAILURE(make(1));
  ASSERT_NO_FATAL_FAILURE(fail_load(0, ErrorKind::ResourceExhausted));
  die(0, kExited);
  pass(seconds(1));
  ASSERT_NO_FATAL_FAILURE(fail_load(0));
  EXPECT_EQ(state(0), State::Failed);
  EXPECT_FALSE(workers_->view(0).waits_for_memory);
}

TEST_F(DecoderWorkersTest, AnOperatorHurriesOneThatWaitsForMemory) {
  options_.waits_for_memory = true;
  ASSERT_NO_FATAL_FAILURE(make(1));
  ASSERT_NO_FATAL_FAILURE(fail_load(0, ErrorKind::ResourceExhausted));
  die(0, kExited);
  workers_->restart(0);
  EXPECT_TRUE(workers_->can_work()) << "from the moment that it is asked for";
  pass(milliseconds(0));
  EXPECT_EQ(start_count(0), 2U);
}

TEST_F(DecoderWorkersTest, WhatAWorkerLastSaidIsWhyItDoesNotServe) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  processes_->groups[0].output = "one\nmuster-worker: the GPU cannot be opened: no device\n";
  die(0, {.reason = "exit code 6", .is_own_fault = true});
  EXPECT_EQ(workers_->view(0).reason,
            "its worker ended with exit code 6; it last said: muster-worker: the GPU cannot be "
            "opened: no device");
}

TEST_F(DecoderWorkersTest, WhatAKilledWorkerLastSaidIsNotWhyItEnded) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  processes_->groups[0].output = "muster-worker: PYTORCH_TUNABLEOP_ENABLED=1 is not heeded\n";
  die(0, kKilled);
  EXPECT_EQ(workers_->view(0).reason, "its worker ended with signal 9 (Killed) from outside");
}

TEST_F(DecoderWorkersTest, ARestartDoesNotWaitForABackOff) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  for (int i = 0; i < 3; ++i) {
    pass(milliseconds(0));
    die(0, kAborted);
  }
  pass(milliseconds(0));  // the fourth start comes after a pause
  const auto started = start_count(0);
  EXPECT_FALSE(workers_->can_work());
  workers_->restart(0);
  EXPECT_TRUE(workers_->can_work());
  pass(milliseconds(0));
  EXPECT_EQ(start_count(0), started + 1);
}

TEST_F(DecoderWorkersTest, ThoseThatRestStartWhenTheyAreResumed) {
  ASSERT_NO_FATAL_FAILURE(make(2, {1}));
  EXPECT_EQ(state(1), State::Drained);
  EXPECT_EQ(start_count(1), 0U);
  EXPECT_FALSE(workers_->is_to_rest());
  workers_->resume(1);
  pass(milliseconds(0));
  EXPECT_EQ(start_count(1), 1U);
}

TEST_F(DecoderWorkersTest, AfterAStopNothingIsStarted) {
  ASSERT_NO_FATAL_FAILURE(make_ready(2));
  die(1, kKilled);
  workers_->stop();
  EXPECT_FALSE(workers_->is_stopped());
  EXPECT_FALSE(workers_->can_work());
  EXPECT_EQ(state(0), State::Draining);
  die(0, kExited);
  EXPECT_TRUE(workers_->is_stopped());
  EXPECT_EQ(state(0), State::Drained);
  workers_->restart(0);
  workers_->resume(0);
  pass(seconds(60));
  EXPECT_EQ(start_count(0), 1U);
  EXPECT_EQ(start_count(1), 1U);
}

TEST_F(DecoderWorkersTest, AProcessThatNoSignalEndsHoldsNobodyUp) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  workers_->stop();
  for (int i = 0; i < 3; ++i) pass(seconds(1));
  EXPECT_EQ(processes_->groups[0].endings.back(), GroupEnding::Kill);
  EXPECT_EQ(processes_->groups[0].left_count, 1U);
  EXPECT_TRUE(workers_->is_stopped());
  EXPECT_NE(notices_.find("does not end: it is left to the system"), std::string::npos) << notices_;
}

TEST_F(DecoderWorkersTest, AWorkerTakesStreamsOnceItsCanaryIsRight) {
  options_.asks_canary = true;
  ASSERT_NO_FATAL_FAILURE(make(2));
  ASSERT_NO_FATAL_FAILURE(load(0));
  EXPECT_EQ(state(0), State::Loading);
  const auto& sent = processes_->groups[0].sent;
  EXPECT_EQ(sent.back(), std::pair(MessageType::Generate, kCanarySequence));
  ASSERT_NO_FATAL_FAILURE(answer_canary(0, -1));
  EXPECT_EQ(state(0), State::Ready);
  ASSERT_NO_FATAL_FAILURE(load(1));
  ASSERT_NO_FATAL_FAILURE(answer_canary(1, -1));
  EXPECT_EQ(state(1), State::Ready);
  EXPECT_EQ(frame_count_, 0U) << "none of it is about streams";

  die(1, kKilled);
  pass(milliseconds(0));
  ASSERT_NO_FATAL_FAILURE(load(1));
  ASSERT_NO_FATAL_FAILURE(answer_canary(1, -2));
  EXPECT_EQ(state(1), State::Ended) << "two have given the other answer";
  EXPECT_EQ(workers_->view(1).reason, "it gave a wrong answer to its canary");
  ASSERT_EQ(processes_->groups[1].endings, std::vector{GroupEnding::EndOfStream});
  EXPECT_EQ(state(0), State::Ready);
}

// The weights found memory, and what a step takes beside them does not.
TEST_F(DecoderWorkersTest, OneWithoutMemoryForItsCanaryWaitsAsForItsLoad) {
  options_.asks_canary = true;
  options_.waits_for_memory = true;
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  ASSERT_TRUE(say(0, MessageType::Failed,
                  encode(Failed{{ErrorKind::ResourceExhausted, "cuda:0 is out of memory"}}),
                  kCanarySequence));
  EXPECT_EQ(processes_->groups[0].endings, std::vector{GroupEnding::EndOfStream}) << "not killed";
  die(0, kExited);
  EXPECT_TRUE(workers_->view(0).waits_for_memory);
  EXPECT_EQ(workers_->view(0).reason, "cuda:0 is out of memory");
  pass(seconds(1));
  EXPECT_EQ(start_count(0), 2U);
  ASSERT_NO_FATAL_FAILURE(load(0));
  ASSERT_NO_FATAL_FAILURE(answer_canary(0, -0.5F));
  EXPECT_TRUE(workers_->takes_streams(0)) << notices_;
  EXPECT_FALSE(workers_->view(0).waits_for_memory);

  // Of another fault it is ended as before.
  die(0, kKilled);
  pass(Duration{0});
  ASSERT_NO_FATAL_FAILURE(load(0));
  ASSERT_TRUE(say(0, MessageType::Failed, encode(Failed{{ErrorKind::Internal, "a fault"}}),
                  kCanarySequence));
  EXPECT_EQ(processes_->groups[0].endings.back(), GroupEnding::Kill);
}

TEST_F(DecoderWorkersTest, OfTwoThatAnswerTheirCanaryDifferentlyBothAreAskedAgain) {
  options_.asks_canary = true;
  ASSERT_NO_FATAL_FAILURE(make(2));
  for (std::size_t i = 0; i < 2; ++i) ASSERT_NO_FATAL_FAILURE(load(i));
  ASSERT_NO_FATAL_FAILURE(answer_canary(0, -1));
  owed_[0] = 1;
  ASSERT_NO_FATAL_FAILURE(answer_canary(1, -2));
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(state(i), State::Ended);
    EXPECT_FALSE(losses_[i].second.is_own_fault) << "nobody knows whose it is";
    die(i, kExited);
  }
  pass(milliseconds(0));
  for (std::size_t i = 0; i < 2; ++i) ASSERT_NO_FATAL_FAILURE(load(i));
  ASSERT_NO_FATAL_FAILURE(answer_canary(0, -2));
  EXPECT_EQ(state(0), State::Ready) << "that is what the other one has said";
  ASSERT_NO_FATAL_FAILURE(answer_canary(1, -2));
  EXPECT_EQ(state(1), State::Ready);
}

// The one that does not come back holds nobody up.
TEST_F(DecoderWorkersTest, AVerdictIsWaitedForAMinute) {
  options_.asks_canary = true;
  ASSERT_NO_FATAL_FAILURE(make(2));
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_NO_FATAL_FAILURE(load(i));
    ASSERT_NO_FATAL_FAILURE(answer_canary(i, -1 - static_cast<float>(i)));
  }
  for (std::size_t i = 0; i < 2; ++i) die(i, kExited);
  pass(milliseconds(0));
  ASSERT_TRUE(greet(1));  // and loads
  ASSERT_NO_FATAL_FAILURE(load(0));
  ASSERT_NO_FATAL_FAILURE(answer_canary(0, -1));
  EXPECT_EQ(state(0), State::Loading);
  EXPECT_EQ(workers_->next_deadline(), clock_.now() + seconds(60));
  pass(seconds(60));
  EXPECT_EQ(state(0), State::Ready);
}

TEST_F(DecoderWorkersTest, OneThatDoesNotAnswerItsCanaryIsEnded) {
  options_.asks_canary = true;
  ASSERT_NO_FATAL_FAILURE(make(3));
  for (std::size_t i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(load(i));
  const auto end = encode(Finished{FinishReason::Length});
  ASSERT_TRUE(say(0, MessageType::Finished, end, kCanarySequence));
  EXPECT_EQ(workers_->view(0).reason, "the worker ended its canary before its end, or twice");
  ASSERT_TRUE(say(1, MessageType::Failed, encode(Failed{{ErrorKind::Internal, "no numbers"}}),
                  kCanarySequence));
  EXPECT_EQ(workers_->view(1).reason, "it failed at its canary: no numbers");
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(state(i), State::Ended);
  EXPECT_EQ(state(2), State::Loading);
  pass(seconds(72));  // 60, and half a second for each of 24 tokens
  EXPECT_EQ(state(2), State::Ended);
  EXPECT_EQ(workers_->view(2).reason, "it has said nothing for too long");
}

TEST_F(DecoderWorkersTest, AModelIsDamagedWhereEveryWorkerComesToNoNumber) {
  options_.asks_canary = true;
  ASSERT_NO_FATAL_FAILURE(make(2));
  const auto fail = [this](std::size_t group, ErrorKind kind) {
    load(group);
    ASSERT_TRUE(
        say(group, MessageType::Failed, encode(Failed{{kind, "no numbers"}}), kCanarySequence));
    EXPECT_EQ(state(group), State::Ended);
    die(group, kKilled);
  };
  for (int life = 0; life < 3; ++life) {
    EXPECT_TRUE(workers_->can_work()) << "it may be the devices' fault";
    for (std::size_t i = 0; i < 2; ++i) {
      ASSERT_NO_FATAL_FAILURE(fail(i, ErrorKind::Corrupt));
    }
    pass(milliseconds(0));
  }
  EXPECT_FALSE(workers_->can_work());
  EXPECT_EQ(workers_->cannot_work_error().kind, ErrorKind::Corrupt);
  EXPECT_EQ(workers_->cannot_work_error().message, "counting: no numbers");
  EXPECT_EQ(workers_->view(0).reason, "counting: no numbers");
  EXPECT_EQ(workers_->view(0).failure_kind, ErrorKind::Corrupt);
  EXPECT_EQ(workers_->view(0).start_failure, "its worker was ended") << "callers may see that";

  pass(milliseconds(100));
  ASSERT_NO_FATAL_FAILURE(fail(1, ErrorKind::Internal));
  EXPECT_EQ(workers_->view(1).failure_kind, std::nullopt);
  EXPECT_EQ(workers_->cannot_work_error().kind, ErrorKind::Unavailable) << "one has another reason";
}

// ---- Silence ----

TEST_F(DecoderWorkersTest, AWorkerIsEndedWhenTheStepThatItIsAtTakesFarTooLong) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  owed_[0] = 1;
  workers_->on_first_given(0);
  EXPECT_EQ(workers_->next_deadline(), clock_.now() + milliseconds(60'500));
  ASSERT_NO_FATAL_FAILURE(begin_step(0, 512));
  EXPECT_EQ(workers_->next_deadline(), clock_.now() + seconds(60 + 256));
  pass(seconds(3));
  ASSERT_NO_FATAL_FAILURE(end_step(0));
  EXPECT_EQ(frame_count_, 1U) << "streams are not told of what begins";
  ASSERT_NO_FATAL_FAILURE(begin_step(0, 512));
  const auto deadline = clock_.now() + seconds(30);  // ten times 3 s
  EXPECT_EQ(workers_->next_deadline(), deadline);
  owed_[0] = 32;
  EXPECT_EQ(workers_->next_deadline(), deadline)
      << "of what it is given meanwhile it knows nothing";
  pass(milliseconds(29'999));
  EXPECT_EQ(state(0), State::Ready);
  pass(milliseconds(1));
  EXPECT_EQ(state(0), State::Ended);
  EXPECT_EQ(workers_->view(0).reason, "it has said nothing for too long");
  EXPECT_EQ(processes_->groups[0].endings, std::vector{GroupEnding::Kill});
}

// 8,000 ids in 16 steps of 40 s, then 100 tokens in 25 s. Then one gives way to another, and what
// it had is computed again.
TEST_F(DecoderWorkersTest, AWorkerThatIsSlowIsLeftAloneInPromptsAndAfterPreemption) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  owed_[0] = 2;
  workers_->on_first_given(0);
  const auto compute_prompt_part = [this] {
    begin_step(0, 512);
    pass(seconds(40));
    end_step(0);
  };
  for (int i = 0; i < 16; ++i) compute_prompt_part();
  for (int i = 0; i < 100; ++i) {
    pass(milliseconds(250));
    end_step(0);
  }
  EXPECT_EQ(workers_->next_deadline(), clock_.now() + seconds(20)) << "a token of each";
  compute_prompt_part();
  EXPECT_EQ(state(0), State::Ready) << notices_;
}

TEST_F(DecoderWorkersTest, AStepOfMoreTokensThanOneMayHaveIsNotWaitedForLonger) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  owed_[0] = 1;
  ASSERT_NO_FATAL_FAILURE(begin_step(0, 4'000'000'000U));
  EXPECT_EQ(workers_->next_deadline(), clock_.now() + seconds(60 + 256));
  ASSERT_TRUE(say(0, MessageType::StepBegun, {}));
  EXPECT_EQ(state(0), State::Ended) << "that is no such message";
}

// What its worker says; preemptions count in all lives, and what a worker that has ended held is
// held no more.
TEST_F(DecoderWorkersTest, WhatTheCacheHoldsIsShown) {
  ASSERT_NO_FATAL_FAILURE(make(1));
  ASSERT_TRUE(greet(0));
  const auto ready = encode(DecoderReady{.vocab_size = 1000, .length_max = 100, .block_count = 8});
  ASSERT_TRUE(say(0, MessageType::DecoderReady, ready));
  EXPECT_EQ(workers_->view(0).cache_use, 0);
  ASSERT_TRUE(say(0, MessageType::CacheUse, encode(CacheUse{6, 3})));
  EXPECT_EQ(workers_->view(0).cache_use, 0.75);
  EXPECT_EQ(workers_->view(0).preemption_count, 3U);
  EXPECT_EQ(frame_count_, 0U) << "it is nothing of a stream";
  die(0, {.reason = "signal 11", .is_own_fault = true});
  EXPECT_EQ(workers_->view(0).cache_use, 0);
  EXPECT_EQ(workers_->view(0).preemption_count, 3U);
  pass(seconds(60));
  ASSERT_TRUE(greet(0));
  ASSERT_TRUE(say(0, MessageType::DecoderReady, ready));
  ASSERT_TRUE(say(0, MessageType::CacheUse, encode(CacheUse{2, 1})));
  EXPECT_EQ(workers_->view(0).cache_use, 0.25);
  EXPECT_EQ(workers_->view(0).preemption_count, 4U);
  ASSERT_TRUE(say(0, MessageType::CacheUse, {}));
  EXPECT_EQ(state(0), State::Ended) << "that is no such message";
}

TEST_F(DecoderWorkersTest, AWorkerThatSaysNonsenseOfItsCacheIsEnded) {
  for (const CacheUse& use : {CacheUse{9, 3}, CacheUse{2, 2}}) {
    ASSERT_NO_FATAL_FAILURE(make(1));
    ASSERT_TRUE(greet(0));
    const auto ready =
        encode(DecoderReady{.vocab_size = 1000, .length_max = 100, .block_count = 8});
    ASSERT_TRUE(say(0, MessageType::DecoderReady, ready));
    ASSERT_TRUE(say(0, MessageType::CacheUse, encode(CacheUse{8, 3})));
    ASSERT_TRUE(say(0, MessageType::CacheUse, encode(use)));
    EXPECT_EQ(state(0), State::Ended) << use.held_block_count;
    EXPECT_EQ(workers_->view(0).preemption_count, 3U);
  }
}

// Of a decoder that is loaded beside others: a program that was replaced ends none of them.
TEST_F(DecoderWorkersTest, AnotherBuildMayCountAsAFailedLoad) {
  options_.ends_with_other_build = false;
  ASSERT_NO_FATAL_FAILURE(make(1));
  ASSERT_TRUE(greet(0, "other"));
  EXPECT_EQ(state(0), State::Failed);
  EXPECT_EQ(workers_->cannot_work_error().kind, ErrorKind::Unavailable);
  EXPECT_NE(workers_->cannot_work_error().message.find("is of another build"), std::string::npos);
}

}  // namespace
}  // namespace muster

// Which worker gets a stream while another one says nothing: both owners of a decoder, on processes
// that do and say what a test says.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "coordinator/decoder_streams.h"
#include "coordinator/decoder_workers.h"
#include "coordinator/fleet_fixture.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class DecoderSilenceTest : public testing::Test, protected DecoderWorkerClient {
 protected:
  void SetUp() override {
    options_.devices.resize(2);
    options_.build = "this";
    options_.source = "counting";
    events_.on_begun = [](StreamId, std::uint32_t) {};
    events_.on_token = [](StreamId, const GeneratedToken&) {};
    events_.on_finished = [this](StreamId, FinishReason) { ++end_count_; };
    events_.on_failed = [](StreamId, const Error& error, bool) { ADD_FAILURE() << error.message; };
    workers_.emplace(options_,
                     DecoderWorkers::Parts{.processes = processes_,
                                           .client = *this,
                                           .signal = signal_,
                                           .clock = clock_,
                                           .on_notice = [](const std::string&, std::size_t) {}});
    streams_.emplace(
        options_, DecoderStreams::Parts{
                      .workers = *workers_, .events = events_, .signal = signal_, .clock = clock_});
    ASSERT_TRUE(workers_->start());
  }

  void say(std::size_t group, MessageType type, const std::vector<std::byte>& payload,
           std::uint64_t id = 0) {
    ASSERT_TRUE(
        workers_->on_frame(group, 0, {.type = static_cast<std::uint8_t>(type), .id = id}, payload));
  }
  void load(std::size_t group) {
    say(group, MessageType::Hello, encode(Hello{.build = "this", .engine_class = "one"}));
    say(group, MessageType::DecoderReady,
        encode(DecoderReady{.vocab_size = 1000, .length_max = 10'000}));
  }
  /// A step of a token each, or of prompts where that was announced.
  void end_step(std::size_t group) { say(group, MessageType::Tokens, encode(Tokens{})); }
  void end_stream(StreamId id) {
    const auto group = streams_->group_of(id);
    ASSERT_TRUE(group);
    say(*group, MessageType::Finished, encode(Finished{FinishReason::Stop}), id);
  }
  void pass(Duration duration) {
    clock_.pass(duration);
    workers_->check_time(clock_.now());
    streams_->settle();
  }
  /// It is given away at once, where it can be.
  StreamId give(std::size_t token_count = 1) {
    const auto id =
        streams_->submit({.ids = std::vector<std::uint32_t>(token_count, 5), .token_limit = 1000});
    streams_->settle();
    return id;
  }

  // DecoderWorkerClient, as DecoderFleet is one
  Status on_stream_frame(std::size_t group, const FrameHeader& header,
                         std::span<const std::byte> payload) override {
    return streams_->on_stream_frame(group, header, payload);
  }
  std::size_t on_lost(std::size_t group, const DecoderLoss& loss) override {
    return streams_->on_lost(group, loss);
  }
  std::size_t owed_count(std::size_t group) const override { return streams_->owed_count(group); }

  HandClock clock_;
  StepSignal signal_;
  DecoderFleetOptions options_;
  DecoderFleetEvents events_;
  FakeProcesses processes_{2};
  std::optional<DecoderWorkers> workers_;
  std::optional<DecoderStreams> streams_;
  int end_count_ = 0;
};

// The first one has two streams and works, the second has one. Nothing was measured of that: it may
// be silent for 60.5 s, and is late after 15.125 s.
TEST_F(DecoderSilenceTest, AWorkerThatIsLateGetsNoStreamWhileAnotherIsWell) {
  for (std::size_t i = 0; i < 2; ++i) load(i);
  for (const std::size_t group : {0U, 1U, 0U}) EXPECT_EQ(streams_->group_of(give()), group);
  pass(milliseconds(15'124));
  end_step(0);
  EXPECT_FALSE(workers_->is_late(1));
  pass(milliseconds(1));
  EXPECT_TRUE(workers_->is_late(1));
  EXPECT_FALSE(workers_->is_late(0));
  EXPECT_EQ(streams_->group_of(give()), 0U);
  EXPECT_EQ(streams_->group_of(give()), 0U) << "four streams, and the other one has one";
  end_step(1);
  EXPECT_EQ(streams_->group_of(give()), 1U) << "it goes on (SIGCONT)";
}

TEST_F(DecoderSilenceTest, WhereAllAreLateTheLeastBusyOneGetsAStream) {
  for (std::size_t i = 0; i < 2; ++i) load(i);
  for (const std::size_t group : {0U, 1U, 0U}) EXPECT_EQ(streams_->group_of(give()), group);
  pass(seconds(16));
  EXPECT_TRUE(workers_->is_late(0) && workers_->is_late(1));
  EXPECT_EQ(streams_->group_of(give()), 1U);
}

TEST_F(DecoderSilenceTest, AWorkerWithoutAStreamIsNeverLate) {
  for (std::size_t i = 0; i < 2; ++i) load(i);
  pass(seconds(1000));
  EXPECT_FALSE(workers_->is_late(0));
  EXPECT_EQ(streams_->group_of(give()), 0U);
  EXPECT_FALSE(workers_->is_late(0)) << "from now on it counts";
  pass(seconds(16));
  EXPECT_TRUE(workers_->is_late(0));
}

// Its streams generate behind 8,000 tokens each, at a quarter of a second a step: 20 s.
TEST_F(DecoderSilenceTest, NeitherLongContextsNorLaterStreamsLengthenTheLimit) {
  for (std::size_t i = 0; i < 2; ++i) load(i);
  workers_->drain(1);
  give(8000);
  give(8000);
  for (int i = 0; i < 4; ++i) {
    pass(milliseconds(250));
    end_step(0);
  }
  const auto heard_at = clock_.now();
  EXPECT_EQ(workers_->next_deadline(), heard_at + seconds(20));
  pass(seconds(19));
  const auto late = give(8000);
  streams_->cancel(give(8000));
  streams_->settle();
  EXPECT_EQ(streams_->group_of(late), 0U);
  EXPECT_EQ(workers_->next_deadline(), heard_at + seconds(20));
  pass(seconds(1));
  EXPECT_EQ(streams_->group_of(late), std::nullopt) << "it waits for another worker";
  EXPECT_EQ(streams_->waiting_count(), 3U);
}

// Two streams were on a worker that died: each is to run alone. The first one does, and its worker
// says nothing more. The other one waits for the worker that is well, though it has more to do.
TEST_F(DecoderSilenceTest, AStreamThatIsToRunAloneDoesNotWaitForAWorkerThatIsLate) {
  load(0);
  const auto first = give();
  const auto second = give();
  load(1);
  std::vector<StreamId> others;
  for (int i = 0; i < 2; ++i) {
    others.push_back(give());
    EXPECT_EQ(streams_->group_of(others.back()), 1U);
  }
  processes_.groups[0].death = WorkerDeath{.reason = "signal 6 (Aborted)", .is_own_fault = true};
  workers_->on_exit(0);
  pass(milliseconds(0));
  load(0);
  streams_->settle();
  EXPECT_EQ(streams_->group_of(first), 0U);
  EXPECT_EQ(streams_->group_of(second), std::nullopt);
  pass(seconds(16));
  end_step(1);
  const auto more = give();
  EXPECT_EQ(streams_->group_of(more), std::nullopt) << "no place is given away before its turn";
  for (const auto id : others) end_stream(id);
  streams_->settle();
  EXPECT_EQ(end_count_, 2);
  EXPECT_EQ(streams_->group_of(second), 1U);
}

}  // namespace
}  // namespace muster

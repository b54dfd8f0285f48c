// How long a worker that has streams may say nothing: both owners of a decoder, on processes that
// do and say what a test says.
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
    events_.on_finished = [](StreamId, FinishReason) {};
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
};

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

}  // namespace
}  // namespace muster

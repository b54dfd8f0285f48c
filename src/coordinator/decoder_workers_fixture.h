#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/decoder_workers.h"
#include "coordinator/fleet_fixture.h"

namespace muster {

/// The lives of workers alone: processes, time and what they owe are the test's.
class DecoderWorkersTest : public testing::Test, protected DecoderWorkerClient {
 protected:
  using State = DecoderGroupView::State;

  inline static const WorkerDeath kAborted{.reason = "signal 6 (Aborted)", .is_own_fault = true};
  inline static const WorkerDeath kKilled{.reason = "signal 9 (Killed) from outside"};
  inline static const WorkerDeath kExited{.reason = "exit code 0"};

  void make(std::size_t count, std::vector<std::size_t> resting = {}) {
    options_.devices.resize(count);
    options_.resting = std::move(resting);
    options_.build = "this";
    options_.source = "counting";
    options_.drain_limit = std::chrono::seconds(30);
    processes_.emplace(count);
    owed_.assign(count, 0);
    workers_.emplace(
        options_, DecoderWorkers::Parts{.processes = *processes_,
                                        .client = *this,
                                        .signal = signal_,
                                        .clock = clock_,
                                        .on_notice = [this](const std::string& text, std::size_t) {
                                          notices_ += text + "\n";
                                        }});
    ASSERT_TRUE(workers_->start());
  }

  void make_ready(std::size_t count) {
    ASSERT_NO_FATAL_FAILURE(make(count));
    for (std::size_t i = 0; i < count; ++i) load(i);
  }

  Status say(std::size_t group, MessageType type, const std::vector<std::byte>& payload,
             std::uint64_t id = 0) {
    const auto done =
        workers_->on_frame(group, 0, {.type = static_cast<std::uint8_t>(type), .id = id}, payload);
    return done ? Status(Done{}) : workers_->on_broken(group, done.error());
  }
  Status greet(std::size_t group, const std::string& build = "this") {
    return say(group, MessageType::Hello, encode(Hello{.build = build, .engine_class = "one"}));
  }
  void load(std::size_t group, std::uint32_t length_max = 100) {
    ASSERT_TRUE(greet(group));
    ASSERT_TRUE(say(group, MessageType::DecoderReady,
                    encode(DecoderReady{.vocab_size = 1000, .length_max = length_max})));
  }
  void fail_load(std::size_t group, ErrorKind kind = ErrorKind::Corrupt) {
    ASSERT_TRUE(greet(group));
    ASSERT_TRUE(say(group, MessageType::LoadFailed, encode(LoadFailed{0, {kind, "no weights"}})));
  }
  // Four tokens, each as likely as this one.
  void answer_canary(std::size_t group, float logprob) {
    const TokenLogprobs logprobs{.chosen = logprob, .top = {}};
    const GeneratedToken token{.sequence = kCanarySequence, .token = 5, .logprobs = logprobs};
    Tokens tokens;
    tokens.tokens.assign(4, token);
    ASSERT_TRUE(say(group, MessageType::Tokens, encode(tokens)));
    ASSERT_TRUE(
        say(group, MessageType::Finished, encode(Finished{FinishReason::Length}), kCanarySequence));
  }
  void begin_step(std::size_t group, std::uint32_t token_count) {
    ASSERT_TRUE(say(group, MessageType::StepBegun, encode(StepBegun{token_count})));
  }
  void end_step(std::size_t group) { ASSERT_TRUE(say(group, MessageType::Tokens, {})); }
  void die(std::size_t group, const WorkerDeath& death) {
    processes_->groups[group].death = death;
    workers_->on_exit(group);
  }
  void pass(Duration duration) {
    clock_.pass(duration);
    workers_->check_time(clock_.now());
    workers_->finish_drains(clock_.now());
  }
  State state(std::size_t group) const { return workers_->view(group).state; }
  std::size_t start_count(std::size_t group) const { return processes_->groups[group].start_count; }

  // DecoderWorkerClient
  Status on_stream_frame(std::size_t, const FrameHeader&, std::span<const std::byte>) override {
    ++frame_count_;
    return Done{};
  }
  std::size_t on_lost(std::size_t group, const DecoderLoss& loss) override {
    losses_.emplace_back(group, loss);
    return std::exchange(owed_[group], 0);
  }
  std::size_t owed_count(std::size_t group) const override { return owed_[group]; }

  HandClock clock_;
  StepSignal signal_;
  DecoderFleetOptions options_;
  std::optional<FakeProcesses> processes_;
  std::optional<DecoderWorkers> workers_;
  std::vector<std::size_t> owed_;
  std::vector<std::pair<std::size_t, DecoderLoss>> losses_;
  std::size_t frame_count_ = 0;
  std::string notices_;
};

}  // namespace muster

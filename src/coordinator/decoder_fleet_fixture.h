#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/build_info.h"
#include "coordinator/decoder_fixture.h"
#include "coordinator/decoder_fleet.h"

namespace muster {

/// A fleet of real worker processes that count, and what it tells of its streams.
class DecoderFleetTest : public testing::Test {
 protected:
  static constexpr Duration kPatience = std::chrono::seconds(60);

  ~DecoderFleetTest() override { ::unsetenv("COUNTING_WORKER"); }

  void start(const std::string& orders, std::size_t worker_count = 1,
             std::uint32_t streams_most = 32) {
    ::setenv("COUNTING_WORKER", orders.c_str(), 1);
    DecoderFleetEvents events;
    events.on_begun = [this](StreamId id, std::uint32_t count) { cached_[id] = count; };
    events.on_token = [this](StreamId id, const GeneratedToken& token) {
      tokens_[id].push_back(token.token);
      if (on_token_) on_token_(id);
    };
    events.on_finished = [this](StreamId id, FinishReason reason) {
      ends_[id] = reason;
      if (on_end_) on_end_(id);
    };
    events.on_failed = [this](StreamId id, const Error& error, bool was_given) {
      failures_[id] = error.message;
      was_given_[id] = was_given;
      if (on_failed_) on_failed_(id);
    };
    events.on_change = [this] { ++change_count_; };
    events.on_notice = [this](const std::string& text, std::size_t) { notices_ += text + "\n"; };
    DecoderFleetOptions options;
    options.devices.resize(worker_count);
    for (std::uint32_t i = 0; i < worker_count; ++i) options.devices[i].index = i;
    options.worker_program = counting_worker();
    options.build = std::string(build_name());
    options.source = "counting";
    options.streams_most = streams_most;
    options.drain_limit = drain_limit_;
    options.silence_most = silence_most_;
    options.load_most = load_most_;
    options.spreads_streams = spreads_streams_;
    options.has_prefix_cache = has_prefix_cache_;
    options.asks_canary = asks_canary_;
    options.is_change_fatal = is_change_fatal_;
    auto fleet = DecoderFleet::start(options, events, clock_);
    ASSERT_TRUE(fleet) << fleet.error().message;
    fleet_ = *std::move(fleet);
  }

  Status step() {
    const auto left =
        std::min<Duration>(fleet_->next_deadline() - clock_.now(), std::chrono::milliseconds(100));
    pollfd waiting{fleet_->wait_fd(), POLLIN, 0};
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::max(left, Duration{0}));
    (void)::poll(&waiting, 1, static_cast<int>(ms.count()));
    return fleet_->step();
  }

  // Waits as an owner does, who takes a step only where it is asked for.
  void step_when_due() {
    constexpr Duration kWaitMost = std::chrono::seconds(20);
    const auto left = std::clamp<Duration>(fleet_->next_deadline() - clock_.now(), {}, kWaitMost);
    pollfd waiting{fleet_->wait_fd(), POLLIN, 0};
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left);
    const bool is_ready = ::poll(&waiting, 1, static_cast<int>(ms.count())) == 1;
    ASSERT_TRUE(is_ready || clock_.now() >= fleet_->next_deadline()) << "nobody is to take a step";
    ASSERT_TRUE(fleet_->step());
  }

  void run_until(const std::function<bool()>& is_so) {
    const auto end = clock_.now() + kPatience;
    while (!is_so()) {
      ASSERT_LT(clock_.now(), end) << notices_;
      const auto done = step();
      ASSERT_TRUE(done) << done.error().message;
    }
  }
  void run() {
    run_until([&] { return fleet_->waiting_count() + fleet_->running_count() == 0; });
  }

  static std::vector<std::uint32_t> counted(std::uint32_t from, std::size_t count) {
    std::vector<std::uint32_t> tokens(count);
    std::iota(tokens.begin(), tokens.end(), from);
    return tokens;
  }

  SetClock clock_;
  Duration silence_most_ = std::chrono::seconds(60);
  Duration load_most_ = std::chrono::seconds(900);
  bool spreads_streams_ = false;
  bool has_prefix_cache_ = true;
  bool asks_canary_ = false;
  Duration drain_limit_ = std::chrono::seconds(30);
  bool is_change_fatal_ = false;
  std::map<StreamId, std::vector<std::uint32_t>> tokens_;
  std::map<StreamId, std::uint32_t> cached_;
  std::map<StreamId, FinishReason> ends_;
  std::map<StreamId, std::string> failures_;
  std::map<StreamId, bool> was_given_;
  std::function<void(StreamId)> on_token_;
  std::function<void(StreamId)> on_end_;
  std::function<void(StreamId)> on_failed_;
  int change_count_ = 0;
  std::string notices_;
  std::unique_ptr<DecoderFleet> fleet_;
};

}  // namespace muster

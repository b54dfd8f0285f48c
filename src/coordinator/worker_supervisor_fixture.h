#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/fleet_fixture.h"
#include "coordinator/worker_supervisor.h"

namespace muster {

/// A supervisor alone: processes, time and what its groups are used for are the test's.
class WorkerSupervisorTest : public testing::Test, protected GroupClient {
 protected:
  static constexpr ModelId kModel = 3;
  static constexpr std::uint64_t kTokens = 100;
  inline static const WorkerDeath kAborted{.reason = "signal 6 (Aborted)", .is_own_fault = true};
  inline static const WorkerDeath kKilled{.reason = "signal 9 (Killed) from outside"};

  void make(std::vector<std::vector<Device>> groups, bool gives_up = false) {
    group_count_ = groups.size();
    processes_.emplace(group_count_);
    models_.emplace(group_count_);
    supervisor_.emplace(
        WorkerSupervisor::Options{.groups = std::move(groups),
                                  .worker_program = "worker",
                                  .build = "this",
                                  .gives_up = gives_up,
                                  .idle = idle_,
                                  .drain_limit = std::chrono::seconds(30)},
        WorkerSupervisor::Parts{.processes = *processes_,
                                .client = *this,
                                .models = *models_,
                                .signal = signal_,
                                .clock = clock_,
                                .on_notice = [this](const std::string& sentence,
                                                    std::size_t) { notices_ += sentence + "\n"; },
                                .is_runnable = [this](pid_t) { return is_runnable_; }});
    ASSERT_TRUE(supervisor_->start());
  }

  /// Groups of one member, greeted, each with one model that has a canary.
  void make_ready(std::size_t count, bool gives_up = false) {
    std::vector<std::vector<Device>> groups(count);
    for (std::size_t i = 0; i < count; ++i) groups[i] = {device(i)};
    ASSERT_NO_FATAL_FAILURE(make(std::move(groups), gives_up));
    models_->add(kModel, /*has_canary=*/true);
    for (std::size_t i = 0; i < count; ++i) make_ready_again(i);
  }

  void make_ready_again(std::size_t group) {
    ASSERT_TRUE(greet(group));
    models_->on(group)[kModel].status.state = ModelState::Ready;
    supervisor_->on_model_ready(group);
  }

  static Device device(std::size_t index) {
    Device device;
    device.index = static_cast<std::uint32_t>(index);
    return device;
  }

  Status say(std::size_t group, std::size_t member, MessageType type,
             const std::vector<std::byte>& payload) {
    const auto done =
        supervisor_->on_frame(group, member, {.type = static_cast<std::uint8_t>(type)}, payload);
    return done ? Status(Done{}) : supervisor_->on_broken(group, done.error());
  }
  Status greet(std::size_t group, std::size_t member = 0, const std::string& build = "this") {
    return say(group, member, MessageType::Hello,
               encode(Hello{.build = build, .engine_class = "one"}));
  }

  Status greet_as(std::size_t group, const std::string& engine_class) {
    return say(group, 0, MessageType::Hello,
               encode(Hello{.build = "this", .engine_class = engine_class}));
  }

  void die(std::size_t group, const WorkerDeath& death) {
    processes_->groups[group].death = death;
    supervisor_->on_exit(group);
  }

  void pass(Duration duration) {
    clock_.pass(duration);
    ASSERT_TRUE(supervisor_->check_time(clock_.now()));
  }

  std::uint64_t send(std::size_t group) {
    return supervisor_->send(group, {.model = kModel, .token_count = kTokens}, {});
  }

  /// Twenty batches that teach what one costs.
  void teach(std::size_t group, Duration cost) {
    for (int i = 0; i < 20; ++i) supervisor_->health(group).speed.on_served(kModel, kTokens, cost);
  }

  GroupStatus status(std::size_t group) const {
    GroupStatus status;
    supervisor_->describe(group, status);
    return status;
  }

  // GroupClient
  Status on_frame(std::size_t, const FrameHeader&, std::span<const std::byte>) override {
    ++frame_count_;
    return Done{};
  }
  void on_state(std::size_t group) override { ++state_counts_[group]; }
  void on_lost(std::size_t group, const GroupLoss& loss) override {
    lost_.emplace_back(group, loss);
  }
  void on_ended(std::size_t group) override {
    for (auto& [id, here] : models_->on(group)) here.status.state = ModelState::Absent;
  }
  bool is_eligible(std::size_t group) const override {
    return supervisor_->life(group).is_serving() && models_->has_ready_model(group);
  }
  std::optional<Duration> predict(std::size_t group, ModelId, std::uint64_t) const override {
    const auto found = predicted_.find(group);
    return found == predicted_.end() ? std::nullopt : std::optional(found->second);
  }

  HandClock clock_;
  StepSignal signal_;
  std::size_t group_count_ = 0;
  std::vector<std::size_t> idle_;
  std::optional<FakeProcesses> processes_;
  std::optional<ModelTable> models_;
  std::optional<WorkerSupervisor> supervisor_;
  std::map<std::size_t, Duration> predicted_;
  std::map<std::size_t, std::size_t> state_counts_;
  std::vector<std::pair<std::size_t, GroupLoss>> lost_;
  std::size_t frame_count_ = 0;
  std::string notices_;
  bool is_runnable_ = false;
};

}  // namespace muster

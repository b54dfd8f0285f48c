// The supervisor alone: processes, time and what its groups are used for are the test's.

#include "coordinator/worker_supervisor.h"

#include <gtest/gtest.h>

#include "coordinator/fleet_fixture.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr ModelId kModel = 3;
constexpr std::uint64_t kTokens = 100;

class WorkerSupervisorTest : public testing::Test, protected GroupClient {
 protected:
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
                                  .drain_limit = seconds(30)},
        WorkerSupervisor::Parts{.processes = *processes_,
                                .client = *this,
                                .models = *models_,
                                .signal = signal_,
                                .clock = clock_,
                                .on_notice = [this](const std::string& sentence, std::size_t) {
                                  notices_ += sentence + "\n";
                                }});
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
};

const WorkerDeath kAborted{.reason = "signal 6 (Aborted)", .is_own_fault = true};
const WorkerDeath kKilled{.reason = "signal 9 (Killed) from outside"};

TEST_F(WorkerSupervisorTest, AnIdleGroupStartsWhenItIsWoken) {
  idle_ = {1};
  ASSERT_NO_FATAL_FAILURE(make({{device(0)}, {device(1)}}));
  EXPECT_EQ(processes_->groups[1].start_count, 0U);
  EXPECT_EQ(status(1).state, GroupState::Idle);
  supervisor_->restart(1);
  pass(seconds(1));
  EXPECT_EQ(processes_->groups[1].start_count, 0U) << "there is nothing to start again";
  supervisor_->wake(1);
  EXPECT_EQ(status(1).state, GroupState::Starting);
  pass(milliseconds(0));
  EXPECT_EQ(processes_->groups[1].start_count, 1U);
  ASSERT_TRUE(greet(1));
  EXPECT_EQ(status(1).restart_count, 0U);
  EXPECT_EQ(status(1).state, GroupState::Ready);
  EXPECT_EQ(processes_->groups[0].start_count, 1U);
}

TEST_F(WorkerSupervisorTest, AnIdleGroupThatIsDrainedStartsWhenItIsWokenAndResumed) {
  idle_ = {0};
  ASSERT_NO_FATAL_FAILURE(make({{device(0)}}));
  supervisor_->drain(0);
  EXPECT_EQ(status(0).state, GroupState::Drained);
  supervisor_->resume(0);
  EXPECT_EQ(status(0).state, GroupState::Idle);
  supervisor_->drain(0);
  supervisor_->wake(0);
  pass(milliseconds(0));
  EXPECT_EQ(processes_->groups[0].start_count, 0U) << "it rests";
  supervisor_->resume(0);
  pass(milliseconds(0));
  EXPECT_EQ(processes_->groups[0].start_count, 1U);
}

TEST_F(WorkerSupervisorTest, AGroupServesOnceEveryMemberHasGreeted) {
  ASSERT_NO_FATAL_FAILURE(make({{device(0), device(1)}}));
  EXPECT_TRUE(supervisor_->life(0).is_alive());
  ASSERT_TRUE(greet(0, 0));
  EXPECT_FALSE(supervisor_->life(0).is_up()) << "its second member has not greeted";
  ASSERT_TRUE(greet(0, 1));
  EXPECT_TRUE(supervisor_->life(0).is_serving());
  const auto shown = status(0);
  EXPECT_EQ(shown.name, "cpu:0");
  ASSERT_EQ(shown.members.size(), 2U);
  EXPECT_EQ(shown.members[1].device.index, 1U);
  EXPECT_NE(shown.members[0].pid, shown.members[1].pid);
}

TEST_F(WorkerSupervisorTest, TheEndOfOneMemberIsTheEndOfItsGroup) {
  ASSERT_NO_FATAL_FAILURE(make({{device(0), device(1)}, {device(2)}}));
  ASSERT_TRUE(greet(0, 0));
  ASSERT_TRUE(greet(0, 1));
  ASSERT_TRUE(greet(1, 0));
  const auto frame = supervisor_->send(0, {.model = kModel}, {});
  supervisor_->on_exit(0);  // one of the two is left
  EXPECT_FALSE(supervisor_->life(0).is_alive());
  EXPECT_TRUE(lost_.empty()) << "its work goes back when it is known how the group ended";
  die(0, kAborted);
  ASSERT_EQ(lost_.size(), 1U);
  EXPECT_EQ(lost_[0].first, 0U);
  EXPECT_EQ(lost_[0].second.end, WorkerEnd::Died);
  EXPECT_EQ(lost_[0].second.running, std::vector<std::uint64_t>{frame});
  EXPECT_FALSE(status(0).pid());
  EXPECT_TRUE(supervisor_->life(1).is_serving()) << "the other group goes on";
  pass(Duration{0});
  EXPECT_EQ(processes_->groups[0].start_count, 2U) << "all members start again, at once";
  EXPECT_EQ(supervisor_->life(0).serial, 2U);
  EXPECT_EQ(status(0).members.size(), 2U);
}

TEST_F(WorkerSupervisorTest, OnlyADeathOfItsOwnFaultIsTheTextsDoing) {
  ASSERT_NO_FATAL_FAILURE(make_ready(2));
  send(0);
  send(1);
  die(0, kAborted);
  die(1, kKilled);
  ASSERT_EQ(lost_.size(), 2U);
  EXPECT_EQ(lost_[0].second.end, WorkerEnd::Died);
  EXPECT_EQ(lost_[0].second.reason, "signal 6 (Aborted)");
  EXPECT_EQ(lost_[1].second.end, WorkerEnd::Innocent);
  EXPECT_TRUE(supervisor_->sent(0).empty());
}

TEST_F(WorkerSupervisorTest, AWorkerOfAnotherBuildEndsAllAtTheStartAndOneLater) {
  ASSERT_NO_FATAL_FAILURE(make({{device(0)}, {device(1)}}));
  const auto refused = greet(0, 0, "that");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "worker is of another build: it is that, this is this");
  ASSERT_TRUE(greet(1));
  ASSERT_TRUE(greet(0, 0, "that"));
  EXPECT_EQ(processes_->groups[0].endings, std::vector<GroupEnding>{GroupEnding::Kill});
  EXPECT_TRUE(supervisor_->life(1).is_serving());
}

// 2 s predicted: ten are allowed.
TEST_F(WorkerSupervisorTest, ASilentGroupIsKilledAndWhatItRanIsSuspected) {
  ASSERT_NO_FATAL_FAILURE(make_ready(2));
  predicted_[0] = seconds(2);
  const auto first = send(0);
  send(0);
  EXPECT_EQ(supervisor_->next_deadline(clock_.now()), clock_.now() + seconds(10));
  pass(seconds(10));
  EXPECT_TRUE(lost_.empty());
  pass(milliseconds(1));
  ASSERT_EQ(lost_.size(), 1U);
  EXPECT_EQ(lost_[0].second.end, WorkerEnd::Silent);
  EXPECT_EQ(lost_[0].second.running, std::vector<std::uint64_t>{first}) << "the second one waited";
  EXPECT_EQ(status(0).state, GroupState::Quarantined);
  EXPECT_EQ(status(0).reason, "no answer in 10.0 s");
  EXPECT_EQ(status(1).state, GroupState::Ready);

  // What it says until it is gone is passed over.
  ASSERT_TRUE(say(0, 0, MessageType::Rows, {}));
  EXPECT_EQ(frame_count_, 0U);
  die(0, kKilled);
  pass(Duration{0});
  make_ready_again(0);
  pass(Duration{0});
  EXPECT_EQ(status(0).state, GroupState::Ready) << notices_;
}

TEST_F(WorkerSupervisorTest, APauseOfTheWholeProgramIsNobodysSilence) {
  ASSERT_NO_FATAL_FAILURE(make_ready(2));
  for (const auto group : {0U, 1U}) {
    predicted_[group] = seconds(2);
    send(group);
  }
  const auto due = clock_.now() + seconds(1);
  clock_.pass(seconds(60));
  supervisor_->forgive_pause(clock_.now(), due);
  pass(seconds(10));
  EXPECT_TRUE(lost_.empty());
  pass(milliseconds(1));
  EXPECT_EQ(lost_.size(), 2U);
}

// A short one, that ends soon after the limit of a batch.
TEST_F(WorkerSupervisorTest, AShortPauseIsNobodysSilenceEither) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  predicted_[0] = milliseconds(200);  // five times as much are allowed
  send(0);
  const auto due = clock_.now() + seconds(1);
  clock_.pass(milliseconds(1'300));
  supervisor_->forgive_pause(clock_.now(), due);
  pass(milliseconds(900));
  EXPECT_TRUE(lost_.empty());
}

// An owner that is late each time: a pipe in front of it that trickles.
TEST_F(WorkerSupervisorTest, AGroupThatHangsIsFoundByAnOwnerThatIsAlwaysLate) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  predicted_[0] = seconds(2);
  send(0);
  for (int i = 0; i < 3 && lost_.empty(); ++i) {
    const auto due = clock_.now() + seconds(10);
    clock_.pass(seconds(15));
    supervisor_->forgive_pause(clock_.now(), due);
    pass(Duration{0});
  }
  EXPECT_EQ(lost_.size(), 1U);
}

// Taught 10 ms; three batches of 200 ms are together over half a second, and each over 50 ms.
TEST_F(WorkerSupervisorTest, ASlowGroupIsPutAsideAliveAndComesBackByItsCanaries) {
  ASSERT_NO_FATAL_FAILURE(make_ready(2));
  teach(0, milliseconds(10));
  const auto frame = send(0);
  auto& health = supervisor_->health(0);
  for (int i = 0; i < 3; ++i) health.speed.on_served(kModel, kTokens, milliseconds(200));
  pass(Duration{0});
  EXPECT_EQ(status(0).state, GroupState::Quarantined);
  EXPECT_TRUE(supervisor_->life(0).is_alive());
  EXPECT_TRUE(processes_->groups[0].endings.empty());
  ASSERT_EQ(lost_.size(), 1U);
  EXPECT_EQ(lost_[0].second.end, WorkerEnd::Innocent);
  EXPECT_NE(supervisor_->sent(0).find(frame), nullptr) << "it may still answer";

  supervisor_->on_right_canary(0, true);
  supervisor_->on_right_canary(0, false);
  supervisor_->on_right_canary(0, true);
  EXPECT_EQ(status(0).state, GroupState::Quarantined) << "two in a row are asked for";
  supervisor_->on_right_canary(0, true);
  EXPECT_EQ(status(0).state, GroupState::Ready);
}

TEST_F(WorkerSupervisorTest, ASlowGroupThatStaysSoStartsAgain) {
  ASSERT_NO_FATAL_FAILURE(make_ready(2));
  teach(0, milliseconds(10));
  for (int i = 0; i < 3; ++i) {
    supervisor_->health(0).speed.on_served(kModel, kTokens, milliseconds(200));
  }
  pass(Duration{0});
  pass(seconds(10));
  EXPECT_EQ(processes_->groups[0].endings, std::vector<GroupEnding>{GroupEnding::Kill});
  die(0, kKilled);
  pass(Duration{0});
  make_ready_again(0);
  pass(Duration{0});
  EXPECT_EQ(status(0).state, GroupState::Quarantined) << "the new one has to show that it is quick";
  EXPECT_TRUE(supervisor_->health(0).slow);
}

TEST_F(WorkerSupervisorTest, TheLastGroupOfAModelIsNotPutAsideForSlowness) {
  ASSERT_NO_FATAL_FAILURE(make_ready(2));
  teach(0, milliseconds(10));
  const auto slow_down = [this] {
    for (int i = 0; i < 3; ++i) {
      supervisor_->health(0).speed.on_served(kModel, kTokens, milliseconds(200));
    }
  };
  supervisor_->drain(1);
  slow_down();
  pass(Duration{0});
  EXPECT_EQ(status(0).state, GroupState::Ready) << "the other one is to rest";
  supervisor_->resume(1);
  pass(Duration{0});
  EXPECT_EQ(status(0).state, GroupState::Quarantined);

  // The one that stood in for it dies: slow is better than nothing.
  die(1, kKilled);
  supervisor_->release_last();
  EXPECT_EQ(status(0).state, GroupState::Ready);
}

TEST_F(WorkerSupervisorTest, ADrainedGroupEndsWhenItHasNothingMoreAndRestsUntilItIsResumed) {
  ASSERT_NO_FATAL_FAILURE(make_ready(2));
  const auto frame = send(0);
  supervisor_->drain(0);
  supervisor_->finish_drain(0, clock_.now());
  EXPECT_EQ(status(0).state, GroupState::Draining);
  EXPECT_TRUE(processes_->groups[0].endings.empty());
  ASSERT_TRUE(supervisor_->take_sent(0, frame));
  supervisor_->finish_drain(0, clock_.now());
  EXPECT_EQ(processes_->groups[0].endings, std::vector<GroupEnding>{GroupEnding::EndOfStream});
  die(0, {.reason = "exit code 0"});
  pass(seconds(60));
  EXPECT_EQ(status(0).state, GroupState::Drained);
  EXPECT_TRUE(status(0).is_to_rest && status(0).is_asked_for);
  supervisor_->resume(0);
  pass(Duration{0});
  EXPECT_EQ(processes_->groups[0].start_count, 2U);
}

TEST_F(WorkerSupervisorTest, ADrainHasALimitAndWhatIsLeftGoesToOthers) {
  ASSERT_NO_FATAL_FAILURE(make_ready(2));
  send(0);
  supervisor_->restart(0);
  clock_.pass(seconds(30));
  supervisor_->finish_drain(0, clock_.now());
  ASSERT_EQ(lost_.size(), 1U);
  EXPECT_EQ(lost_[0].second.end, WorkerEnd::Innocent);
  die(0, {.reason = "exit code 0"});
  pass(Duration{0});
  EXPECT_EQ(processes_->groups[0].start_count, 2U);
  EXPECT_FALSE(status(0).is_to_rest);
}

// Three deaths in ten seconds: the fourth start waits for 0.1 s.
TEST_F(WorkerSupervisorTest, AGroupThatKeepsDyingStartsLaterAndAnOperatorMayHurryIt) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  for (int deaths = 1; deaths <= 3; ++deaths) {
    die(0, kKilled);
    if (deaths < 3) pass(Duration{0});
  }
  pass(milliseconds(99));
  EXPECT_EQ(processes_->groups[0].start_count, 3U);
  EXPECT_EQ(status(0).state, GroupState::Restarting);
  supervisor_->restart(0);
  pass(Duration{0});
  EXPECT_EQ(processes_->groups[0].start_count, 4U);
}

TEST_F(WorkerSupervisorTest, AJobGivesAGroupUpThatCannotStartAndAServerDoesNot) {
  for (const bool gives_up : {true, false}) {
    SCOPED_TRACE(gives_up);
    ASSERT_NO_FATAL_FAILURE(make({{device(0)}, {device(1)}}, gives_up));
    for (int i = 0; i < 3; ++i) {
      die(0, {.reason = "exit code 3", .is_own_fault = true});
      pass(seconds(31));
    }
    EXPECT_EQ(status(0).state == GroupState::GivenUp, gives_up);
    EXPECT_EQ(supervisor_->failed_start_count(0), 3U);
    EXPECT_EQ(status(0).is_failing, gives_up) << "a server's back-off is short yet";
    EXPECT_FALSE(supervisor_->are_all_given_up());
  }
}

TEST_F(WorkerSupervisorTest, AGroupThatDoesNotEndGivesItsWorkAwayAndIsReportedOnce) {
  ASSERT_NO_FATAL_FAILURE(make_ready(2));
  send(0);
  supervisor_->on_stream_end(0);
  EXPECT_TRUE(lost_.empty());
  pass(seconds(1));
  ASSERT_FALSE(lost_.empty());
  EXPECT_EQ(lost_[0].second.reason, "its worker does not end");
  for (int second = 0; second < 20; ++second) pass(seconds(1));
  const std::string report = "a call into the driver holds it; the device waits for its end";
  const auto at = notices_.find(report);
  ASSERT_NE(at, std::string::npos) << notices_;
  EXPECT_EQ(notices_.find(report, at + 1), std::string::npos);
  die(0, kKilled);
  pass(Duration{0});
  EXPECT_EQ(processes_->groups[0].start_count, 2U);
}

TEST_F(WorkerSupervisorTest, AConvictedGroupIsQuarantinedUntilItsNextLifeIsWell) {
  ASSERT_NO_FATAL_FAILURE(make_ready(2));
  send(0);
  supervisor_->convict(0, "it gave a wrong vector for its canary");
  ASSERT_EQ(lost_.size(), 1U);
  EXPECT_EQ(lost_[0].second.end, WorkerEnd::Innocent) << "its texts are not to blame";
  die(0, kKilled);
  pass(Duration{0});
  ASSERT_TRUE(greet(0));
  EXPECT_EQ(status(0).state, GroupState::Quarantined) << "its model is not loaded";
  models_->on(0)[kModel].status.state = ModelState::Ready;
  supervisor_->on_model_ready(0);
  pass(Duration{0});
  EXPECT_EQ(status(0).state, GroupState::Ready);
  EXPECT_EQ(status(0).quarantine_count, 1U);
}

TEST_F(WorkerSupervisorTest, AGroupWithAFaultHasNoProcessesUntilItIsOver) {
  ASSERT_NO_FATAL_FAILURE(make_ready(2));
  send(0);
  supervisor_->set_fault(0, "the driver reported XID 48 (1 times)");
  EXPECT_EQ(processes_->groups[0].endings, std::vector<GroupEnding>{GroupEnding::Kill});
  ASSERT_EQ(lost_.size(), 1U);
  EXPECT_EQ(lost_[0].second.end, WorkerEnd::Innocent) << "its texts are not to blame";
  die(0, kKilled);
  pass(seconds(60));
  EXPECT_EQ(processes_->groups[0].start_count, 1U);
  EXPECT_EQ(status(0).state, GroupState::Quarantined);
  EXPECT_EQ(status(0).reason, "the driver reported XID 48 (1 times)");
  EXPECT_TRUE(status(0).is_failing);
  notices_.clear();
  supervisor_->set_fault(0, "the driver reported XID 48 (2 times)");
  EXPECT_EQ(status(0).reason, "the driver reported XID 48 (2 times)");
  EXPECT_EQ(notices_, "cpu:0: the driver reported XID 48 (2 times)\n");
  EXPECT_EQ(status(0).quarantine_count, 1U);
  supervisor_->set_fault(0, std::nullopt);
  pass(milliseconds(0));
  EXPECT_EQ(processes_->groups[0].start_count, 2U);
  EXPECT_EQ(status(0).state, GroupState::Quarantined) << "its model is not loaded";
  make_ready_again(0);
  pass(milliseconds(0));
  EXPECT_EQ(status(0).state, GroupState::Ready);
  EXPECT_FALSE(status(0).is_failing);
}

TEST_F(WorkerSupervisorTest, AFaultKeepsAGroupThatHasJustDiedFromStarting) {
  ASSERT_NO_FATAL_FAILURE(make_ready(2));
  die(0, kAborted);
  supervisor_->set_fault(0, "the driver reported XID 95 (1 times)");
  pass(seconds(60));
  EXPECT_EQ(processes_->groups[0].start_count, 1U);
  EXPECT_EQ(status(0).state, GroupState::Quarantined);
}

TEST_F(WorkerSupervisorTest, AnOperatorStartsAGroupInSpiteOfItsFault) {
  ASSERT_NO_FATAL_FAILURE(make_ready(2));
  for (const std::size_t group : {0U, 1U}) {
    supervisor_->set_fault(group, "the driver asks to reset the GPU");
    die(group, kKilled);
  }
  supervisor_->restart(0);
  supervisor_->drain(1);
  EXPECT_EQ(status(1).state, GroupState::Drained);
  EXPECT_EQ(status(1).reason, "drained; the driver asks to reset the GPU");
  notices_.clear();
  supervisor_->set_fault(1, "the driver reported XID 48 (1 times)");
  EXPECT_EQ(status(1).state, GroupState::Drained) << "it rests anyway";
  EXPECT_EQ(status(1).reason, "drained; the driver reported XID 48 (1 times)");
  EXPECT_EQ(notices_, "cpu:1: the driver reported XID 48 (1 times)\n");
  supervisor_->resume(1);
  pass(milliseconds(0));
  for (const std::size_t group : {0U, 1U}) {
    SCOPED_TRACE(group);
    EXPECT_EQ(processes_->groups[group].start_count, 2U);
    make_ready_again(group);
    pass(milliseconds(0));
    EXPECT_EQ(status(group).state, GroupState::Ready);
  }
  supervisor_->set_fault(0, "the driver reported XID 48 (1 times)");
  EXPECT_EQ(status(0).state, GroupState::Quarantined) << "this one is new";
}

// Who resumes it shall see the fault; what it still computed may be wrong.
TEST_F(WorkerSupervisorTest, AFaultEndsADrainedGroupAtOnceAndIsShownUntilItIsOver) {
  ASSERT_NO_FATAL_FAILURE(make_ready(2));
  send(0);
  supervisor_->drain(0);
  EXPECT_EQ(status(0).reason, "drained");
  supervisor_->set_fault(0, "the driver reported XID 48 (1 times)");
  EXPECT_EQ(processes_->groups[0].endings, std::vector<GroupEnding>{GroupEnding::Kill});
  ASSERT_EQ(lost_.size(), 1U);
  EXPECT_EQ(lost_[0].second.end, WorkerEnd::Innocent) << "its texts are not to blame";
  die(0, kKilled);
  pass(seconds(60));
  EXPECT_EQ(processes_->groups[0].start_count, 1U);
  EXPECT_EQ(status(0).state, GroupState::Drained);
  EXPECT_EQ(status(0).reason, "drained; the driver reported XID 48 (1 times)");
  supervisor_->set_fault(0, std::nullopt);
  pass(seconds(60));
  EXPECT_EQ(processes_->groups[0].start_count, 1U) << "it rests until an operator resumes it";
  EXPECT_EQ(status(0).reason, "drained");
  supervisor_->resume(0);
  pass(milliseconds(0));
  EXPECT_EQ(processes_->groups[0].start_count, 2U);
}

TEST_F(WorkerSupervisorTest, AnIdleGroupWithAFaultIsNotStartedWhenItIsWoken) {
  idle_ = {0};
  ASSERT_NO_FATAL_FAILURE(make({{device(0)}}));
  supervisor_->set_fault(0, "the driver asks to reset the GPU");
  supervisor_->wake(0);
  pass(seconds(60));
  EXPECT_EQ(processes_->groups[0].start_count, 0U);
  EXPECT_EQ(status(0).state, GroupState::Quarantined);
  supervisor_->set_fault(0, std::nullopt);
  pass(milliseconds(0));
  EXPECT_EQ(processes_->groups[0].start_count, 1U);
}

TEST_F(WorkerSupervisorTest, AJobGivesAGroupWithAFaultUp) {
  ASSERT_NO_FATAL_FAILURE(make_ready(2, /*gives_up=*/true));
  supervisor_->set_fault(0, "the driver reported XID 79 (1 times)");
  EXPECT_EQ(notices_, "cpu:0: the driver reported XID 79 (1 times); it is given up\n");
  die(0, kKilled);
  supervisor_->set_fault(0, std::nullopt);
  pass(seconds(60));
  EXPECT_EQ(processes_->groups[0].start_count, 1U);
  EXPECT_EQ(status(0).state, GroupState::GivenUp);
  EXPECT_FALSE(supervisor_->are_all_given_up());
}

TEST_F(WorkerSupervisorTest, AStopKillsWhatDoesNotEndAndLeavesWhatCannotBeKilled) {
  ASSERT_NO_FATAL_FAILURE(make_ready(2));
  processes_->groups[0].death = WorkerDeath{.reason = "exit code 0", .cpu_seconds = 1.5};
  EXPECT_EQ(supervisor_->stop(), 1.5);
  EXPECT_EQ(processes_->groups[0].endings, std::vector<GroupEnding>{GroupEnding::EndOfStream});
  EXPECT_EQ(processes_->groups[1].endings,
            (std::vector<GroupEnding>{GroupEnding::EndOfStream, GroupEnding::Kill}));
  EXPECT_EQ(processes_->groups[1].left_count, 1U);
  EXPECT_EQ(notices_,
            "cpu:1: its worker, process 101, was killed and does not end: it is left to the "
            "system\n");
}

TEST_F(WorkerSupervisorTest, AFailedStartIsTriedAgainLater) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  die(0, kKilled);
  processes_->start_error = Error{ErrorKind::ResourceExhausted, "no more processes"};
  pass(Duration{0});
  EXPECT_EQ(status(0).reason, "no more processes");
  EXPECT_EQ(status(0).state, GroupState::Restarting);
  processes_->start_error.reset();
  pass(seconds(31));
  EXPECT_TRUE(supervisor_->life(0).is_alive());
}

}  // namespace
}  // namespace muster

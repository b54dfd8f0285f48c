// The supervisor alone: processes, time and what its groups are used for are the test's.

#include "coordinator/worker_supervisor.h"

#include <gtest/gtest.h>

#include "coordinator/worker_supervisor_fixture.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

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

// A GPU that is not there yet when a server starts, and is when an operator starts its device
// again.
TEST_F(WorkerSupervisorTest, AServersGroupMayComeWithAnotherEngineUntilItHasHadAModel) {
  ASSERT_NO_FATAL_FAILURE(make({{device(0)}}));
  ASSERT_TRUE(greet_as(0, "none"));
  die(0, kKilled);
  pass(Duration{0});
  ASSERT_TRUE(greet_as(0, "one"));
  EXPECT_TRUE(supervisor_->life(0).is_serving()) << notices_;
  EXPECT_EQ(status(0).engine_class, "one");
  supervisor_->on_model_ready(0);
  die(0, kKilled);
  pass(Duration{0});
  ASSERT_TRUE(greet_as(0, "none"));
  EXPECT_FALSE(supervisor_->life(0).is_alive());
  EXPECT_NE(notices_.find("the engine changed between two starts: one and none"), std::string::npos)
      << notices_;
}

TEST_F(WorkerSupervisorTest, MembersOfAGroupHaveOneEngine) {
  ASSERT_NO_FATAL_FAILURE(make({{device(0), device(1)}}));
  ASSERT_TRUE(greet(0, 0));
  ASSERT_TRUE(
      say(0, 1, MessageType::Hello, encode(Hello{.build = "this", .engine_class = "another"})));
  EXPECT_FALSE(supervisor_->life(0).is_alive());
}

TEST_F(WorkerSupervisorTest, AJobsGroupKeepsTheEngineThatItBeganWith) {
  ASSERT_NO_FATAL_FAILURE(make({{device(0)}}, /*gives_up=*/true));
  ASSERT_TRUE(greet_as(0, "none"));
  die(0, kKilled);
  pass(Duration{0});
  ASSERT_TRUE(greet_as(0, "one"));
  EXPECT_FALSE(supervisor_->life(0).is_alive()) << "its file is of the other one";
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
  supervisor_->on_stream_end(0, std::nullopt);
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

TEST_F(WorkerSupervisorTest, AGroupThatDiesGivesItsWorkAwayBeforeItIsGone) {
  ASSERT_NO_FATAL_FAILURE(make_ready(2));
  send(0);
  supervisor_->on_stream_end(0, WorkerDeath{.reason = "signal 11", .is_own_fault = true});
  ASSERT_EQ(lost_.size(), 1U);
  EXPECT_EQ(lost_[0].second.end, WorkerEnd::Died);
  EXPECT_EQ(lost_[0].second.reason, "signal 11");
  EXPECT_EQ(lost_[0].second.running.size(), 1U);
  EXPECT_EQ(processes_->groups[0].start_count, 1U) << "it is not gone yet";
  EXPECT_EQ(status(0).reason, "worker ended with signal 11");
  die(0, {.reason = "signal 11", .is_own_fault = true});
  EXPECT_TRUE(lost_.back().second.running.empty()) << "once";
  EXPECT_NE(notices_.find("worker ended with signal 11; 1 batches wait again"), std::string::npos)
      << notices_;
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

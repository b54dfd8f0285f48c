// When a silent group counts as hung, and what excuses its silence.

#include <gtest/gtest.h>

#include "coordinator/worker_supervisor_fixture.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

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

// Ten seconds are allowed, and fifty in all while its threads are runnable.
TEST_F(WorkerSupervisorTest, AGroupThatOnlyLacksACpuHasMoreTime) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  predicted_[0] = seconds(2);
  is_runnable_ = true;
  send(0);
  for (int i = 1; i <= 4; ++i) {
    pass(seconds(10));
    EXPECT_TRUE(lost_.empty());
    pass(milliseconds(1));
    EXPECT_TRUE(lost_.empty()) << "after " << i << " times as long";
    EXPECT_GT(supervisor_->next_deadline(clock_.now()), clock_.now() + seconds(9));
  }
  EXPECT_NE(notices_.find("it has more time"), std::string::npos) << notices_;
  EXPECT_EQ(notices_.find("runnable"), notices_.rfind("runnable")) << "once: " << notices_;
  pass(seconds(10));
  ASSERT_EQ(lost_.size(), 1U) << "it turns in circles";
  EXPECT_EQ(lost_[0].second.end, WorkerEnd::Silent);
}

TEST_F(WorkerSupervisorTest, AGroupThatIsNoLongerRunnableHasNoMoreTime) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  predicted_[0] = seconds(2);
  is_runnable_ = true;
  send(0);
  pass(milliseconds(10'001));
  is_runnable_ = false;
  pass(milliseconds(9'999));
  EXPECT_TRUE(lost_.empty());
  pass(milliseconds(1));
  EXPECT_EQ(lost_.size(), 1U);
}

// 100 s are allowed, and 15 s more four times.
TEST_F(WorkerSupervisorTest, MoreTimeIsAMinuteAtMost) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  predicted_[0] = seconds(20);
  is_runnable_ = true;
  send(0);
  pass(milliseconds(100'001));
  for (int i = 0; i < 3; ++i) pass(seconds(15));
  pass(milliseconds(14'999));
  EXPECT_TRUE(lost_.empty());
  pass(milliseconds(1));
  EXPECT_EQ(lost_.size(), 1U);
}

// A canary asks whether the device is well.
TEST_F(WorkerSupervisorTest, OnlyTextsHaveMoreTime) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  predicted_[0] = seconds(2);
  is_runnable_ = true;
  supervisor_->send(0, {.kind = FrameKind::Canary, .model = kModel, .token_count = kTokens}, {});
  pass(milliseconds(10'001));
  EXPECT_EQ(lost_.size(), 1U);
}

// Before another has greeted it may take 120 s.
TEST_F(WorkerSupervisorTest, AGreetingHasNoMoreTime) {
  ASSERT_NO_FATAL_FAILURE(make({{device(0)}}));
  is_runnable_ = true;
  pass(seconds(120));
  EXPECT_EQ(notices_.find("it is killed"), std::string::npos) << notices_;
  pass(milliseconds(1));
  EXPECT_NE(notices_.find("it is killed"), std::string::npos) << notices_;
}

// Two lanes: what one batch had more of is not the other's, and is not lost by the other's answer.
TEST_F(WorkerSupervisorTest, EachBatchHasItsOwnTime) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  supervisor_->on_load_answered(0, 2);
  predicted_[0] = seconds(2);
  is_runnable_ = true;
  send(0);
  pass(seconds(4));
  const auto second = send(0);
  pass(milliseconds(6'001));  // the first is allowed up to 20 s
  pass(seconds(4));           // and the second as long
  ASSERT_TRUE(supervisor_->take_sent(0, second));
  is_runnable_ = false;
  EXPECT_EQ(supervisor_->next_deadline(clock_.now()), clock_.now() + milliseconds(5'999));
  pass(milliseconds(5'999));
  EXPECT_TRUE(lost_.empty());
  pass(milliseconds(1));
  EXPECT_EQ(lost_.size(), 1U);
}

// What it had more of is of that batch alone.
TEST_F(WorkerSupervisorTest, TheNextBatchIsAllowedWhatIsUsual) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  predicted_[0] = seconds(2);
  is_runnable_ = true;
  const auto late = send(0);
  pass(milliseconds(10'001));
  ASSERT_TRUE(supervisor_->take_sent(0, late));
  send(0);
  EXPECT_EQ(supervisor_->next_deadline(clock_.now()), clock_.now() + seconds(10));
  is_runnable_ = false;
  pass(milliseconds(10'001));
  EXPECT_EQ(lost_.size(), 1U);
}

// A driver that hangs may turn in circles.
TEST_F(WorkerSupervisorTest, AGpusGroupHasNoMoreTimeForThat) {
  auto gpu = device(0);
  gpu.kind = DeviceKind::Cuda;
  ASSERT_NO_FATAL_FAILURE(make({{gpu}}));
  models_->add(kModel, /*has_canary=*/true);
  make_ready_again(0);
  predicted_[0] = seconds(2);
  is_runnable_ = true;
  send(0);
  pass(milliseconds(10'001));
  EXPECT_EQ(lost_.size(), 1U);
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

// 15 s predicted: 75 are allowed. Another model finds no memory and is tried again every 60 s, for
// 5 s each time: these do not count, and the others do.
TEST_F(WorkerSupervisorTest, ABatchThatHangsIsFoundBesideALoadThatIsTriedAgainAndAgain) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  predicted_[0] = seconds(15);
  send(0);
  const auto try_to_load = [&] {
    models_->on(0)[kModel + 1].status.state = ModelState::Loading;
    supervisor_->tell(0, MessageType::Load, {});
    pass(seconds(5));
    models_->on(0)[kModel + 1].status.state = ModelState::Failed;
    supervisor_->on_load_answered(0, 0);
  };
  pass(seconds(60));
  try_to_load();
  pass(seconds(15));
  EXPECT_TRUE(lost_.empty()) << "75 s of 80";
  pass(milliseconds(1));
  EXPECT_EQ(lost_.size(), 1U) << notices_;
}

// Two loads, one after the other: 30 s, of which none count.
TEST_F(WorkerSupervisorTest, ABatchIsExcusedForEachOfTheLoadsBesideIt) {
  ASSERT_NO_FATAL_FAILURE(make_ready(1));
  predicted_[0] = seconds(8);  // 40 s are allowed
  for (const ModelId model : {kModel + 1, kModel + 2}) {
    models_->on(0)[model].status.state = ModelState::Loading;
    supervisor_->tell(0, MessageType::Load, {});
  }
  send(0);
  pass(seconds(10));
  for (const ModelId model : {kModel + 1, kModel + 2}) {
    models_->on(0)[model].status.state = ModelState::Ready;
    supervisor_->on_load_answered(0, 1);
    if (model == kModel + 1) pass(seconds(20));
  }
  pass(seconds(40));
  EXPECT_TRUE(lost_.empty());
  pass(milliseconds(1));
  EXPECT_EQ(lost_.size(), 1U) << notices_;
}

}  // namespace
}  // namespace muster

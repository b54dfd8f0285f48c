// The registry alone: the groups that it loads models onto are fakes, and their answers the test's.

#include "coordinator/model_registry.h"

#include <gtest/gtest.h>

#include <limits>

#include "coordinator/fleet_fixture.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr ModelId kModel = 5;
constexpr std::uint32_t kDim = 2;
const std::vector<std::uint32_t> kCanary{11, 12, 13, 14};
const std::vector<float> kRow{0.5F, 0.25F};
const std::vector<float> kOtherRow{0.5F, 0.75F};

class ModelRegistryTest : public testing::Test, protected ModelEvents, protected BatchCosts {
 protected:
  explicit ModelRegistryTest(std::size_t group_count = 2, std::uint32_t full_most = 0)
      : groups_(group_count, clock_),
        table_(group_count),
        registry_({.canary_period = seconds(10), .full_most = full_most},
                  {.table = table_,
                   .groups = groups_,
                   .costs = *this,
                   .events = *this,
                   .signal = signal_,
                   .clock = clock_,
                   .on_wrong_canary = [this](std::size_t group) { wrong_.push_back(group); },
                   .on_full =
                       [this](std::size_t group, ModelId, const std::string& sentence) {
                         full_.emplace_back(group, sentence);
                       }}) {}

  static FleetModel with_canary() {
    FleetModel model;
    model.canary = kCanary;
    return model;
  }

  void settle() {
    for (std::size_t i = 0; i < table_.group_count(); ++i) {
      if (groups_.life(i).is_up()) registry_.settle(i, clock_.now());
      registry_.drop_leaving(i);
    }
  }

  Status answer_load(std::size_t group, std::uint32_t dim = kDim, ModelId model = kModel) {
    MUSTER_TRY(registry_.on_loaded(group, {.model_id = model, .dim = dim, .lane_count = 1}));
    registry_.ask_first_canary(group, model);
    return Done{};
  }

  /// Answers the newest frame of the group.
  void answer_canary(std::size_t group, const std::vector<float>& row = kRow,
                     Duration engine = milliseconds(1)) {
    const auto frame = take_newest(group);
    ASSERT_EQ(frame.kind, FrameKind::Canary);
    registry_.on_canary_row(group, frame,
                            {.engine_ns = static_cast<std::uint64_t>(engine.count()),
                             .rows = std::as_bytes(std::span(row))});
  }
  void fail_canary(std::size_t group, ErrorKind kind) {
    registry_.on_canary_failed(group, take_newest(group), {kind, "told to fail"});
  }
  SentFrame take_newest(std::size_t group) {
    return *groups_.sent_of(group).take(groups_.last_of(group).frame.id, clock_.now());
  }

  /// Both groups have the model, and their first canaries agreed.
  void make_ready() {
    registry_.load(kModel, with_canary());
    settle();
    for (std::size_t i = 0; i < table_.group_count(); ++i) {
      ASSERT_TRUE(answer_load(i));
      answer_canary(i);
    }
    ASSERT_TRUE(takes_work(0) && takes_work(1));
  }

  /// Both groups have the model, and their first canaries differed.
  void disagree() {
    registry_.load(kModel, with_canary());
    settle();
    ASSERT_TRUE(answer_load(0));
    answer_canary(0, kRow);
    ASSERT_TRUE(answer_load(1));
    answer_canary(1, kOtherRow);
    ASSERT_EQ(disputed_, (std::vector<std::size_t>{0, 1}));
  }

  /// A new life of the group.
  void start_again(std::size_t group) {
    groups_.life_of(group).end_by.reset();
    groups_.life_of(group).is_quarantined = false;
    groups_.sent_of(group).clear();
    registry_.on_ended(group);
  }

  bool takes_work(std::size_t group, ModelId model = kModel) const {
    const auto* here = table_.find(group, model);
    return here != nullptr && here->takes_work();
  }
  GroupStatus status(std::size_t group) const {
    GroupStatus status;
    registry_.describe(group, status);
    return status;
  }

  // ModelEvents
  void on_models_changed(std::size_t group) override { ++changed_[group]; }
  void on_model_ready(std::size_t group) override { ++ready_[group]; }
  void on_right_canary(std::size_t group, ModelId, std::optional<bool> is_in_time) override {
    right_.emplace_back(group, is_in_time);
  }
  void on_disputed_canary(std::size_t group, const std::string&) override {
    disputed_.push_back(group);
    groups_.life_of(group).end_by = clock_.now();
  }
  void on_unloaded(ModelId model) override { unloaded_.push_back(model); }
  bool is_accused(std::size_t group) const override { return accused_ == group; }

  // BatchCosts
  std::optional<Duration> predict(std::size_t group, ModelId, std::uint64_t) const override {
    return measured_.contains(group) ? std::optional<Duration>(milliseconds(1)) : std::nullopt;
  }
  std::uint64_t token_budget(std::size_t) const override { return 100; }
  void calibrate(std::size_t group, ModelId, const LoadTrial::Measure& measure) override {
    measured_[group].push_back(measure.token_count);
  }
  void on_out_of_memory(std::size_t, std::uint64_t token_count) override {
    too_large_.push_back(token_count);
  }

  HandClock clock_;
  StepSignal signal_;
  FakeWorkerGroups groups_;
  ModelTable table_;
  ModelRegistry registry_;
  std::map<std::size_t, std::size_t> changed_;
  std::map<std::size_t, std::size_t> ready_;
  std::vector<std::pair<std::size_t, std::optional<bool>>> right_;
  std::vector<std::size_t> disputed_;
  std::vector<std::size_t> wrong_;
  std::vector<std::pair<std::size_t, std::string>> full_;
  std::vector<ModelId> unloaded_;
  std::optional<std::size_t> accused_;
  std::map<std::size_t, std::vector<std::uint64_t>> measured_;
  std::vector<std::uint64_t> too_large_;
};

TEST_F(ModelRegistryTest, LoadsAModelWhereItIsToBeAndAgainAfterEveryRestart) {
  FleetModel model;
  model.devices = {1};
  registry_.load(kModel, model);
  settle();
  EXPECT_EQ(groups_.told_count(0, MessageType::Load), 0U);
  ASSERT_EQ(groups_.told_count(1, MessageType::Load), 1U);
  settle();
  EXPECT_EQ(groups_.told_count(1, MessageType::Load), 1U) << "once in a life";
  ASSERT_TRUE(answer_load(1));
  EXPECT_TRUE(takes_work(1)) << "without a canary it is trusted";
  EXPECT_EQ(registry_.dim(kModel), kDim);
  EXPECT_EQ(registry_.first_ready_at(), clock_.now());

  start_again(1);
  EXPECT_FALSE(takes_work(1));
  settle();
  EXPECT_EQ(groups_.told_count(1, MessageType::Load), 2U);
}

TEST_F(ModelRegistryTest, AGroupThatIsNotUpIsAskedNothing) {
  groups_.life_of(0).is_greeted = false;
  groups_.life_of(1).goal = GroupGoal::Drain;
  registry_.load(kModel, with_canary());
  settle();
  EXPECT_TRUE(groups_.told.empty());
}

TEST_F(ModelRegistryTest, AGroupGetsNoWorkBeforeItsFirstCanaryIsRight) {
  registry_.load(kModel, with_canary());
  settle();
  ASSERT_TRUE(answer_load(0));
  EXPECT_FALSE(takes_work(0));
  EXPECT_EQ(groups_.last_of(0).batch.ids, kCanary);
  answer_canary(0);
  EXPECT_TRUE(takes_work(0));
  EXPECT_EQ(ready_[0], 1U);
  EXPECT_TRUE(right_.empty()) << "it was no question about a group that works";
}

TEST_F(ModelRegistryTest, RowsOfAnotherLengthThanThoseOfOthersAreRefused) {
  registry_.load(kModel, with_canary());
  settle();
  ASSERT_TRUE(answer_load(0));
  const auto refused = answer_load(1, kDim + 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "workers disagree on the dimension: 2 and 3");
  EXPECT_FALSE(answer_load(1, kDim, kModel + 1)) << "nobody asked for it";
}

// Nobody knows which of the two is right: both start again, and the row that comes twice is.
TEST_F(ModelRegistryTest, TwoGroupsThatDisagreeAnswerAgainAndTheOddOneIsConvicted) {
  ASSERT_NO_FATAL_FAILURE(disagree());
  EXPECT_EQ(wrong_, (std::vector<std::size_t>{0, 1})) << "what either has answered is in doubt";

  for (const auto group : {0U, 1U}) start_again(group);
  settle();
  ASSERT_TRUE(answer_load(0));
  answer_canary(0, kRow);
  EXPECT_FALSE(takes_work(0)) << "its verdict waits for the other one's answer";
  ASSERT_TRUE(answer_load(1));
  answer_canary(1, kRow);
  EXPECT_TRUE(takes_work(0) && takes_work(1));
  EXPECT_TRUE(groups_.convicted.empty());
}

// It would be asked without a pause for a minute, and each answer kept as a vote.
TEST_F(ModelRegistryTest, ACanaryThatHadNoMemoryIsAskedOnceWhileItsVerdictWaits) {
  ASSERT_NO_FATAL_FAILURE(disagree());
  for (const auto group : {0U, 1U}) start_again(group);
  settle();
  ASSERT_TRUE(answer_load(0));
  fail_canary(0, ErrorKind::ResourceExhausted);
  clock_.pass(seconds(1));
  settle();
  answer_canary(0, kRow);
  const auto asked_count = groups_.frames.size();
  clock_.pass(seconds(1));
  settle();
  EXPECT_EQ(groups_.frames.size(), asked_count);
  EXPECT_GT(registry_.next_deadline(), clock_.now());
  ASSERT_TRUE(answer_load(1));
  answer_canary(1, kRow);
  EXPECT_TRUE(takes_work(0) && takes_work(1));
}

TEST_F(ModelRegistryTest, AGroupThatContradictsARowOfTwoIsConvictedAlone) {
  ASSERT_NO_FATAL_FAILURE(make_ready());
  EXPECT_EQ(registry_.canary_rows(kModel).at("one"), kRow);
  clock_.pass(seconds(10));
  settle();
  answer_canary(0);
  answer_canary(1, kOtherRow);
  EXPECT_EQ(groups_.convicted,
            (std::map<std::size_t, std::string>{{1, "it gave a wrong vector for its canary"}}));
  EXPECT_EQ(wrong_, std::vector<std::size_t>{1});
  EXPECT_TRUE(status(0).last_canary->is_well);
  EXPECT_FALSE(status(1).last_canary->is_well);
}

TEST_F(ModelRegistryTest, ARowThatIsNoNumberIsAFailure) {
  ASSERT_NO_FATAL_FAILURE(make_ready());
  clock_.pass(seconds(10));
  settle();
  answer_canary(0, {0.5F, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_EQ(groups_.convicted.at(0),
            "it failed at its canary: its vector is not finite (NaN or infinity)");
}

// At 10 s, and then 10 s after each answer.
TEST_F(ModelRegistryTest, CanariesComeRegularlyAndNotOnTopOfAFullGroup) {
  ASSERT_NO_FATAL_FAILURE(make_ready());
  const auto count = groups_.frames.size();
  EXPECT_EQ(registry_.next_deadline(), clock_.now() + seconds(10));
  clock_.pass(seconds(10));
  for (std::uint64_t id = 1000; id < 1002; ++id) {
    groups_.sent_of(1).push({.id = id, .model = kModel}, clock_.now());
  }
  settle();
  ASSERT_EQ(groups_.frames.size(), count + 1) << "the other group has no room";
  EXPECT_EQ(groups_.last_of(0).frame.kind, FrameKind::Canary);
  settle();
  EXPECT_EQ(groups_.frames.size(), count + 1) << "one at a time";
  groups_.sent_of(1).take(1000, clock_.now());
  settle();
  EXPECT_EQ(groups_.frames.size(), count + 2);
  clock_.pass(seconds(1));
  answer_canary(0);
  EXPECT_EQ(table_.find(0, kModel)->canary_at, clock_.now() + seconds(10));
  ASSERT_EQ(right_.size(), 1U);
  EXPECT_EQ(right_[0].second, true);
}

TEST_F(ModelRegistryTest, ASlowGroupIsAskedByItsOwnClockAndToldWhetherItWasInTime) {
  ASSERT_NO_FATAL_FAILURE(make_ready());
  auto& slow = groups_.health(0).slow;
  slow.emplace(clock_.now());
  groups_.life_of(0).is_quarantined = true;
  const auto count = groups_.frames.size();
  EXPECT_EQ(registry_.next_deadline(), clock_.now() + seconds(1));
  clock_.pass(milliseconds(999));
  settle();
  EXPECT_EQ(groups_.frames.size(), count);
  clock_.pass(milliseconds(1));
  settle();
  ASSERT_EQ(groups_.frames.size(), count + 1);
  // It was taught 1 ms; allowed are 5, a time slice more.
  answer_canary(0, kRow, milliseconds(6));
  EXPECT_EQ(right_.back().second, false);
  EXPECT_EQ(slow->canary_at(), clock_.now() + seconds(2));
}

// A canary that nobody asks for is no reason to wake: the owner would do so without end.
TEST_F(ModelRegistryTest, NoDeadlineIsOfACanaryThatIsNotAskedFor) {
  ASSERT_NO_FATAL_FAILURE(make_ready());
  const auto count = groups_.frames.size();
  groups_.life_of(0).goal = GroupGoal::Drain;  // with batches to end
  groups_.health(1).slow.emplace(clock_.now());
  clock_.pass(seconds(1));
  settle();
  ASSERT_EQ(groups_.frames.size(), count + 1) << "the slow one's own";
  clock_.pass(seconds(10));
  settle();
  EXPECT_EQ(groups_.frames.size(), count + 1) << "it has not answered yet";
  EXPECT_EQ(registry_.next_deadline(), TimePoint::max());

  groups_.health(1).slow.reset();
  answer_canary(1);
  EXPECT_EQ(registry_.next_deadline(), clock_.now() + seconds(10));
  groups_.sent_of(1).push({.id = 1000, .model = kModel}, clock_.now());
  registry_.unload(kModel);
  clock_.pass(seconds(10));
  settle();
  EXPECT_EQ(groups_.frames.size(), count + 1) << "its last batch is ended";
  EXPECT_EQ(registry_.next_deadline(), TimePoint::max());
}

TEST_F(ModelRegistryTest, ACanaryWithoutMemoryIsAskedAgainAndConvictsNobody) {
  ASSERT_NO_FATAL_FAILURE(make_ready());
  clock_.pass(seconds(10));
  settle();
  fail_canary(0, ErrorKind::ResourceExhausted);
  EXPECT_TRUE(takes_work(0) && full_.empty()) << "nothing hangs on this one";
  accused_ = 1;
  fail_canary(1, ErrorKind::ResourceExhausted);
  accused_.reset();
  ASSERT_EQ(full_.size(), 1U);
  EXPECT_EQ(full_[0].first, 1U);
  EXPECT_EQ(full_[0].second,
            "there is no memory for its canary: told to fail; it is asked again in 1 s");
  EXPECT_FALSE(takes_work(1));
  EXPECT_EQ(table_.together(1), ModelsTogether::Full);
  EXPECT_TRUE(status(1).models.at(kModel).waits_for_memory);
  EXPECT_EQ(status(1).reason, "there is no memory for its canary: told to fail; it is asked again");

  for (const int pause : {1, 2}) {
    const auto count = groups_.frames.size();
    EXPECT_EQ(registry_.next_deadline(), clock_.now() + seconds(pause));
    settle();
    EXPECT_EQ(groups_.frames.size(), count) << "not yet";
    clock_.pass(seconds(pause));
    settle();
    ASSERT_EQ(groups_.frames.size(), count + 1);
    if (pause == 1) fail_canary(1, ErrorKind::ResourceExhausted);
  }
  answer_canary(1);
  EXPECT_TRUE(takes_work(1));
  EXPECT_EQ(ready_[1], 2U);
  EXPECT_EQ(status(1).reason, "");
  EXPECT_TRUE(groups_.convicted.empty());
}

TEST_F(ModelRegistryTest, AFirstCanaryWithoutMemoryLeavesTheWeightsWhereTheyAre) {
  auto model = with_canary();
  model.devices = {0};
  registry_.load(kModel, model);
  settle();
  ASSERT_TRUE(answer_load(0));
  fail_canary(0, ErrorKind::ResourceExhausted);
  EXPECT_EQ(table_.together(0), ModelsTogether::Full);
  clock_.pass(seconds(1));
  settle();
  answer_canary(0);
  EXPECT_TRUE(takes_work(0));
  EXPECT_EQ(groups_.told_count(0, MessageType::Load), 1U);
  EXPECT_TRUE(groups_.convicted.empty());
}

// Budget of 100 tokens, a canary of 4: rounds of 1, 8 and 25 texts; two lanes each compute one.
TEST_F(ModelRegistryTest, ATrialMeasuresSeveralSizesInEveryLaneBeforeTheFirstText) {
  auto model = with_canary();
  model.devices = {0};
  model.is_measured_at_load = true;
  registry_.load(kModel, model);
  settle();
  groups_.sent_of(0).set_lane_count(2);
  ASSERT_TRUE(answer_load(0));
  answer_canary(0);
  for (const std::uint64_t texts : {1U, 8U, 25U}) {
    EXPECT_FALSE(takes_work(0));
    ASSERT_EQ(groups_.sent(0).size(), 2U);
    for (int lane = 0; lane < 2; ++lane) {
      const auto frame = groups_.sent(0).all().front();
      ASSERT_EQ(frame.kind, FrameKind::Trial);
      EXPECT_EQ(frame.text_count, texts);
      groups_.sent_of(0).take(frame.id, clock_.now());
      registry_.on_trial_batch(0, frame, {.engine_ns = texts * 1'000'000U, .rows = {}});
    }
  }
  EXPECT_TRUE(takes_work(0));
  EXPECT_EQ(measured_[0], (std::vector<std::uint64_t>{4, 32, 100}));

  start_again(0);
  settle();
  ASSERT_TRUE(answer_load(0));
  answer_canary(0);
  EXPECT_TRUE(takes_work(0)) << "a new life costs what the last one did";
}

TEST_F(ModelRegistryTest, ATrialThatDoesNotFitIsOverAndTheGroupWorks) {
  auto model = with_canary();
  model.devices = {0};
  model.is_measured_at_load = true;
  registry_.load(kModel, model);
  settle();
  ASSERT_TRUE(answer_load(0));
  answer_canary(0);
  registry_.on_trial_too_large(0, take_newest(0));
  EXPECT_TRUE(takes_work(0));
  EXPECT_EQ(too_large_, std::vector<std::uint64_t>{4});
}

TEST_F(ModelRegistryTest, AnUnloadedModelLeavesAGroupWhenItHasNoBatchOfItAnyMore) {
  ASSERT_NO_FATAL_FAILURE(make_ready());
  groups_.sent_of(0).push({.id = 1000, .model = kModel}, clock_.now());
  registry_.unload(kModel);
  EXPECT_EQ(unloaded_, std::vector<ModelId>{kModel});
  EXPECT_FALSE(takes_work(0) || takes_work(1));
  settle();
  EXPECT_EQ(groups_.told_count(0, MessageType::Unload), 0U);
  EXPECT_EQ(groups_.told_count(1, MessageType::Unload), 1U);
  EXPECT_EQ(table_.find(1, kModel), nullptr);
  groups_.sent_of(0).take(1000, clock_.now());
  settle();
  EXPECT_EQ(groups_.told_count(0, MessageType::Unload), 1U);
  registry_.unload(kModel);
  EXPECT_EQ(unloaded_.size(), 1U) << "once";
}

TEST_F(ModelRegistryTest, AModelThatIsUnloadedWhileItLoadsIsLetGoWhenItHasLoaded) {
  registry_.load(kModel, with_canary());
  settle();
  registry_.unload(kModel);
  settle();
  EXPECT_NE(table_.find(0, kModel), nullptr) << "its worker still reads it";
  ASSERT_TRUE(answer_load(0));
  EXPECT_TRUE(groups_.frames.empty()) << "nobody wants to know whether it is right";
  settle();
  EXPECT_EQ(groups_.told_count(0, MessageType::Unload), 1U);
}

TEST_F(ModelRegistryTest, AModelThatCannotBeLoadedIsAStateWithItsReason) {
  registry_.load(kModel, with_canary());
  settle();
  EXPECT_TRUE(registry_.on_load_failed(0, {kModel, {ErrorKind::Corrupt, "no weights"}}));
  EXPECT_FALSE(registry_.on_load_failed(0, {kModel + 1, {ErrorKind::Corrupt, "no weights"}}));
  EXPECT_EQ(status(0).reason, "a model cannot be loaded: no weights");
  EXPECT_EQ(status(0).models.at(kModel).failure_kind, ErrorKind::Corrupt);
  EXPECT_EQ(status(1).models.at(kModel).failure_kind, std::nullopt);
  EXPECT_TRUE(table_.may_be_loaded(kModel)) << "the other group may still load it";
  EXPECT_EQ(table_.together(0), ModelsTogether::Failed);
  EXPECT_EQ(table_.together(1), ModelsTogether::Coming);
  EXPECT_TRUE(registry_.on_load_failed(1, {kModel, {ErrorKind::Corrupt, "no weights"}}));
  EXPECT_FALSE(table_.may_be_loaded(kModel));
}

TEST_F(ModelRegistryTest, ALoadWithoutMemoryIsTriedAgainLaterAndLater) {
  auto model = with_canary();
  model.devices = {0};
  registry_.load(kModel, model);
  settle();
  std::size_t load_count = 1;
  for (const int pause : {1, 2}) {
    ASSERT_TRUE(registry_.on_load_failed(0, {kModel, {ErrorKind::ResourceExhausted, "full"}}));
    EXPECT_EQ(status(0).reason, "a model cannot be loaded: full; it is tried again");
    EXPECT_EQ(table_.together(0), ModelsTogether::Full);
    EXPECT_TRUE(table_.may_be_loaded(kModel));
    EXPECT_EQ(registry_.next_deadline(), clock_.now() + seconds(pause));
    settle();
    EXPECT_EQ(groups_.told_count(0, MessageType::Load), load_count) << "not yet";
    clock_.pass(seconds(pause));
    settle();
    EXPECT_EQ(groups_.told_count(0, MessageType::Load), ++load_count);
    EXPECT_EQ(registry_.next_deadline(), TimePoint::max()) << "its answer is waited for";
  }
  ASSERT_TRUE(answer_load(0));
  answer_canary(0);
  EXPECT_TRUE(takes_work(0));
  EXPECT_EQ(status(0).reason, "");
}

TEST_F(ModelRegistryTest, WhatCannotBeLoadedForAnotherReasonIsNotTriedAgain) {
  auto model = with_canary();
  model.devices = {0};
  registry_.load(kModel, model);
  settle();
  ASSERT_TRUE(registry_.on_load_failed(0, {kModel, {ErrorKind::ResourceExhausted, "full"}}));
  clock_.pass(seconds(1));
  settle();
  ASSERT_TRUE(registry_.on_load_failed(0, {kModel, {ErrorKind::Corrupt, "no weights"}}));
  EXPECT_EQ(table_.together(0), ModelsTogether::Failed);
  EXPECT_EQ(registry_.next_deadline(), TimePoint::max());
  clock_.pass(seconds(100));
  settle();
  EXPECT_EQ(groups_.told_count(0, MessageType::Load), 2U);
}

class JobRegistryTest : public ModelRegistryTest {
 protected:
  JobRegistryTest() : ModelRegistryTest(2, /*full_most=*/2) {}
};

TEST_F(JobRegistryTest, AJobTriesNoMoreThanSoOften) {
  registry_.load(kModel, with_canary());
  settle();
  ASSERT_TRUE(answer_load(1));
  for (const auto expected : {ModelsTogether::Full, ModelsTogether::Failed}) {
    ASSERT_TRUE(registry_.on_load_failed(0, {kModel, {ErrorKind::ResourceExhausted, "full"}}));
    EXPECT_EQ(table_.together(0), expected);
    EXPECT_TRUE(groups_.convicted.empty());
    fail_canary(1, ErrorKind::ResourceExhausted);
    clock_.pass(seconds(1));
    settle();
  }
  EXPECT_EQ(groups_.convicted.at(1), "it failed at its canary: told to fail");
}

TEST_F(ModelRegistryTest, ACheckAsksEveryGroupAndReportsThoseThatDoNotAnswer) {
  ASSERT_NO_FATAL_FAILURE(make_ready());
  std::vector<CanaryResult> results;
  registry_.check(seconds(1), [&](const std::vector<CanaryResult>& all) { results = all; });
  clock_.pass(milliseconds(100));
  answer_canary(0);
  registry_.finish_checks(clock_.now());
  EXPECT_TRUE(results.empty()) << "one answer is still to come";
  EXPECT_EQ(registry_.next_deadline(), clock_.now() + milliseconds(900));
  clock_.pass(milliseconds(900));
  registry_.finish_checks(clock_.now());
  ASSERT_EQ(results.size(), 2U);
  EXPECT_TRUE(results[0].is_well);
  EXPECT_DOUBLE_EQ(*results[0].seconds, 0.1);
  EXPECT_FALSE(results[1].is_well);
  EXPECT_EQ(results[1].reason, "no answer in 1.0 s");
}

TEST_F(ModelRegistryTest, ACheckReportsAGroupThatEndsAndOneThatDoesNotServe) {
  ASSERT_NO_FATAL_FAILURE(make_ready());
  groups_.life_of(0).goal = GroupGoal::Drain;
  groups_.life_of(0).has_processes = false;
  std::vector<CanaryResult> results;
  registry_.check(seconds(1), [&](const std::vector<CanaryResult>& all) { results = all; });
  registry_.on_ended(1);
  registry_.finish_checks(clock_.now());
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].reason, "drained");
  EXPECT_EQ(results[1].reason, "its worker ended");
}

}  // namespace
}  // namespace muster

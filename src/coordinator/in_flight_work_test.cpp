// The work in flight alone (in_flight_work_fixture.h).

#include "coordinator/in_flight_work.h"

#include <gtest/gtest.h>

#include <limits>

#include "coordinator/in_flight_work_fixture.h"

namespace muster {
namespace {

using std::chrono::microseconds;

TEST_F(InFlightWorkTest, GroupsGetTextsInTurnAndEveryTextItsOwnRow) {
  submit({1, 2, 3, 4});
  EXPECT_FALSE(running(0).empty());
  EXPECT_FALSE(running(1).empty());
  EXPECT_EQ(work_.pending_count(), 4U);
  answer_all();
  expect_rows({1, 2, 3, 4});
  EXPECT_EQ(status(0).text_count + status(1).text_count, 4U);
  EXPECT_EQ(status(0).in_flight_texts, 0U);
  for (const auto group : {0U, 1U}) {
    EXPECT_EQ(work_.dispatcher().in_flight_token_count(group), 0U);
    EXPECT_TRUE(work_.predict(group, kModel, 10)) << "it has learnt what a batch costs";
  }
}

TEST_F(InFlightWorkTest, ABatchThatWasCutForWantOfMemoryTeachesNothingOfSpeed) {
  const auto knows_speed = [&] { return groups_.health(0).speed.predict(kModel, 10).has_value(); };
  submit_short(1);
  const auto id = groups_.sent(0).all().front().id;
  const std::vector<float> row{1, 0};
  groups_.sent_of(0).take(id, clock_.now());
  work_.on_rows(
      0, id,
      {.engine_ns = 1'000'000, .is_cut = true, .dim = kDim, .rows = std::as_bytes(std::span(row))});
  work_.feed();
  EXPECT_FALSE(knows_speed());
  submit({2, 3, 4, 5});
  answer_all();
  expect_rows({1, 2, 3, 4, 5});
  EXPECT_TRUE(knows_speed());
}

TEST_F(InFlightWorkTest, AGroupThatDoesNotServeOrLacksTheModelGetsNothing) {
  rest(0, true);
  submit({1, 2});
  EXPECT_TRUE(groups_.sent(0).empty());
  EXPECT_FALSE(groups_.sent(1).empty());
  rest(0, false);
  serve(kModel + 1, {1});
  submit({3}, kModel + 1);
  for (const auto& sent : groups_.frames) {
    EXPECT_FALSE(sent.group == 0 && sent.batch.model_id == kModel + 1);
  }
}

TEST_F(InFlightWorkTest, ATextOfAModelThatIsNotThereIsRefusedInTheNextStep) {
  submit({1}, kModel + 1);
  EXPECT_TRUE(failed_.empty()) << "not while it is submitted";
  EXPECT_TRUE(signal_.is_due());
  EXPECT_EQ(work_.pending_count(), 1U);
  work_.deliver_refusals();
  EXPECT_EQ(failed_.at(1).message, "no such model is loaded");
  submit({2}, kModel + 1);
  EXPECT_TRUE(work_.cancel(2));
  work_.deliver_refusals();
  EXPECT_EQ(failed_.size(), 1U);
}

TEST_F(InFlightWorkTest, NothingIsHeardOfACancelledTextWhereverItIs) {
  rest(1, true);
  submit({1, 2});
  const auto with_group = running(0).front();
  EXPECT_TRUE(work_.cancel(with_group));
  EXPECT_FALSE(work_.cancel(with_group));
  answer_all();
  expect_rows({3 - with_group});
}

// What was running may be why the group died; what waited behind it is as it was.
TEST_F(InFlightWorkTest, ADeathTakesOnlyTheRunningBatchApart) {
  rest(1, true);
  submit_short(12);
  ASSERT_EQ(running(0), keys_from(1, 6));
  ASSERT_EQ(groups_.sent(0).size(), 2U) << "7 to 12 wait behind them";
  lose(0, WorkerEnd::Died);
  EXPECT_EQ(running(0).size(), 1U) << "a suspect runs alone";
  EXPECT_EQ(groups_.sent(0).size(), 1U) << "and the group has nothing else meanwhile";
  rest(1, false);
  work_.feed();
  EXPECT_EQ(running(1), keys_from(7, 12)) << "what waited is as it was";
  answer_all();
  expect_rows(keys_from(1, 12));
}

TEST_F(InFlightWorkTest, ATextThatIsAloneInASecondDeathHasItsErrorAndTheOthersTheirRows) {
  rest(1, true);
  submit_short(2);
  ASSERT_EQ(running(0), keys_from(1, 2));
  rest(1, false);
  lose(0, WorkerEnd::Died);
  ASSERT_EQ(running(1), std::vector<ItemKey>{1}) << "a suspect goes to another group, alone";
  lose(1, WorkerEnd::Died);
  answer_all();
  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_EQ(failed_.at(1).message, "this text alone makes the worker fail: it ended");
  expect_rows({2});
}

TEST_F(InFlightWorkTest, AKillFromOutsideSuspectsNobody) {
  for (int kills = 0; kills < 5; ++kills) {
    if (kills == 0) submit({1, 2, 3});
    lose(0, WorkerEnd::Innocent);
    lose(1, WorkerEnd::Innocent);
  }
  answer_all();
  expect_rows({1, 2, 3});
  EXPECT_TRUE(failed_.empty());
}

TEST_F(InFlightWorkTest, ABatchThatHungRunsAsItIsOnAnotherGroup) {
  rest(1, true);
  submit_short(12);
  ASSERT_EQ(running(0), keys_from(1, 6));
  rest(1, false);
  lose(0, WorkerEnd::Silent);
  EXPECT_EQ(running(1), keys_from(1, 6));
  answer_all();
  expect_rows(keys_from(1, 12));
}

TEST_F(InFlightWorkTest, AFailureAsksTheCanaryFirstAndStopsTheWork) {
  submit({1, 2, 3, 4});
  fail(0);
  EXPECT_EQ(asked_, std::vector<std::size_t>{0});
  EXPECT_TRUE(work_.is_accused(0));
  EXPECT_FALSE(work_.is_eligible(0));
  EXPECT_FALSE(work_.acquit(0, kModel + 1)) << "another model's canary says nothing about it";
  work_.feed();
  EXPECT_TRUE(failed_.empty());
  acquit(0);
  EXPECT_TRUE(work_.is_eligible(0));
  answer_all();
  expect_rows({1, 2, 3, 4});
  EXPECT_TRUE(groups_.convicted.empty());
}

// Three times the other group does what it cannot.
TEST_F(InFlightWorkTest, AGroupThatIsOutdoneThreeTimesIsConvicted) {
  for (ItemKey key = 1; key <= 3; ++key) {
    EXPECT_TRUE(groups_.convicted.empty());
    rest(1, true);
    submit({key});
    fail(0);
    rest(1, false);
    acquit(0);
    ASSERT_EQ(running(1), std::vector<ItemKey>{key}) << "the same batch, on the other group";
    answer(1);
    if (key == 3) break;
    // Between two failures it serves one, or it would be at fault for three in a row.
    rest(1, true);
    submit({key + 100});
    answer(0);
  }
  EXPECT_EQ(groups_.convicted.at(0), "it fails at batches that cpu:1 can");
  EXPECT_TRUE(failed_.empty());
}

TEST_F(InFlightWorkTest, ThreeFailuresInARowAreTheGroupsFaultWhateverItsCanarySays) {
  rest(1, true);
  submit({1});
  for (int failures = 1; failures <= 3; ++failures) {
    ASSERT_EQ(running(0), std::vector<ItemKey>{1});
    fail(0);
    acquit(0);
  }
  EXPECT_EQ(groups_.convicted.at(0),
            "it fails at batch after batch, the last one with: told to fail");
  EXPECT_TRUE(failed_.empty()) << "the text is not to blame";
}

TEST_F(InFlightWorkTest, ATextThatBothGroupsFailAtHasItsError) {
  rest(1, true);
  submit({8});
  answer(0);
  rest(1, false);
  rest(0, true);
  submit({9});
  answer(1);  // both have done something else
  rest(0, false);
  rest(1, true);
  submit({1});
  fail(0);
  rest(1, false);
  acquit(0);
  ASSERT_EQ(running(1), std::vector<ItemKey>{1});
  fail(1);
  acquit(1);
  EXPECT_EQ(failed_.at(1).message, "told to fail");
  EXPECT_EQ(work_.pending_count(), 0U);
}

TEST_F(InFlightWorkTest, AnErrorThatNamesTheTextsAsksNobody) {
  rest(1, true);
  submit_short(2);
  fail(0, {ErrorKind::InvalidArgument, "no such token"});
  EXPECT_TRUE(asked_.empty());
  rest(1, false);
  work_.feed();
  EXPECT_EQ(running(1), std::vector<ItemKey>{1}) << "its texts run one by one";
  EXPECT_TRUE(running(0).empty()) << "elsewhere";
}

TEST_F(InFlightWorkTest, ARowThatIsNoNumberIsNotDeliveredAndTheSecondTimeTheTextFails) {
  rest(1, true);
  submit_short(2);
  answer(0, {1});
  EXPECT_EQ(rows_.count(1), 0U);
  EXPECT_EQ(rows_.count(2), 1U) << "the others of its batch have their rows";
  rest(1, false);
  acquit(0);
  ASSERT_EQ(running(1), std::vector<ItemKey>{1});
  answer(1, {1});
  EXPECT_EQ(failed_.at(1).message, "the vector of this text is not finite (NaN or infinity)");
  EXPECT_EQ(work_.pending_count(), 0U);
  EXPECT_TRUE(groups_.convicted.empty());
}

// Eight values are looked at together, and those behind the last eight one by one.
TEST_F(InFlightWorkTest, OnlyAnInfinityOrNoNumberIsRefusedWhereverItStands) {
  using Limits = std::numeric_limits<float>;
  submit_short(6);
  const auto frame = groups_.sent(0).all().front();
  ASSERT_EQ(keys_of(frame.id), keys_from(1, 6));
  std::vector<float> rows;
  const auto add = [&rows](float key, float second, float third) {
    for (const auto value : {key, second, third}) rows.push_back(value);
  };
  add(1, Limits::max(), -0.0F);
  add(2, 0, Limits::infinity());
  add(3, -Limits::quiet_NaN(), 0);
  add(4, Limits::lowest(), Limits::denorm_min());
  add(5, -Limits::infinity(), -Limits::infinity());
  add(6, -Limits::min(), -Limits::max());
  groups_.sent_of(0).take(frame.id, clock_.now());
  work_.on_rows(0, frame.id,
                {.engine_ns = 1'000'000, .dim = 3, .rows = std::as_bytes(std::span(rows))});
  expect_rows({1, 4, 6});
  EXPECT_EQ(asked_, (std::vector<std::size_t>{0})) << "once for all three";
  EXPECT_EQ(work_.pending_count(), 3U);
}

// All rows of a batch lie behind each other, 18 values here: the text is found to which it belongs.
class OneBadValueTest : public InFlightWorkTest, public testing::WithParamInterface<std::size_t> {};

TEST_P(OneBadValueTest, KeepsNoOtherRowOfTheBatchBack) {
  submit_short(6);
  const auto frame = groups_.sent(0).all().front();
  ASSERT_EQ(keys_of(frame.id), keys_from(1, 6));
  std::vector<float> rows;
  for (std::size_t key = 1; key <= 6; ++key) {
    rows.insert(rows.end(), {static_cast<float>(key), 0, std::numeric_limits<float>::lowest()});
  }
  rows.at(GetParam()) = std::numeric_limits<float>::quiet_NaN();
  groups_.sent_of(0).take(frame.id, clock_.now());
  work_.on_rows(0, frame.id,
                {.engine_ns = 1'000'000, .dim = 3, .rows = std::as_bytes(std::span(rows))});
  auto good = keys_from(1, 6);
  good.erase(good.begin() + static_cast<std::ptrdiff_t>(GetParam() / 3));
  expect_rows(good);
  EXPECT_EQ(work_.pending_count(), 1U);
  GroupStatus status;
  work_.describe(0, status);
  EXPECT_EQ(status.text_count, 5U);
  EXPECT_EQ(status.batch_count, 1U);
}

INSTANTIATE_TEST_SUITE_P(AtEveryPlace, OneBadValueTest, testing::Range<std::size_t>(0, 18));

// Once: it would have been a wrong vector.
TEST_F(InFlightWorkTest, AGroupWhoseRowIsNoNumberWhereAnothersIsOneIsConvictedAtOnce) {
  rest(1, true);
  submit({1});
  answer(0, {1});
  rest(1, false);
  acquit(0);
  answer(1);
  EXPECT_EQ(groups_.convicted.at(0), "it gives no finite vector for texts that cpu:1 can");
  expect_rows({1});
}

// Of 140 tokens a batch takes half, seven texts; of the rest it takes 64, six; one waits.
TEST_F(InFlightWorkTest, UnloadingFailsWhatWaitsLetsRunningTextsComeBackAndEndsQuestions) {
  rest(1, true);
  submit_short(14);
  ASSERT_EQ(status(0).in_flight_texts, 13U);
  fail(0);
  models_.remove(kModel);
  models_.on(0).at(kModel).is_leaving = true;
  work_.update_group(0);
  work_.on_unloaded(kModel);
  EXPECT_FALSE(work_.is_accused(0));
  EXPECT_EQ(failed_.size(), 8U) << "the batch in question, and the text that waited";
  for (const auto& [key, error] : failed_) EXPECT_EQ(error.kind, ErrorKind::NotFound) << key;
  answer(0);
  expect_rows(keys_from(8, 13));
  EXPECT_EQ(work_.pending_count(), 0U);
}

TEST_F(InFlightWorkTest, AnAnswerToABatchThatWasGivenAwayIsNobodys) {
  rest(1, true);
  submit({1});
  const auto late = groups_.sent(0).all().front().id;
  // Quarantined for slowness: it lives, and keeps its frames.
  groups_.life_of(0).is_quarantined = true;
  work_.update_group(0);
  rest(1, false);
  work_.on_lost(0, {.end = WorkerEnd::Innocent, .reason = "slow"});
  work_.feed();
  answer(1);
  expect_rows({1});
  const std::vector<float> row{1, 0};
  work_.on_rows(0, late, {.dim = kDim, .rows = std::as_bytes(std::span(row))});
  work_.on_failed(0, late, kTold);
  expect_rows({1});
  EXPECT_FALSE(work_.is_accused(0));
}

TEST_F(InFlightWorkTest, AnIdleGroupIsToldToExpectATextOnceInItsTime) {
  work_.expect();
  work_.expect();
  EXPECT_EQ(groups_.told_count(0, MessageType::Expect), 1U);
  clock_.pass(microseconds(500));
  submit({1});
  work_.expect();
  EXPECT_EQ(groups_.told.size(), 1U) << "what it could announce is here";
  answer_all();
  work_.expect();
  EXPECT_EQ(groups_.told.size(), 2U);
  EXPECT_EQ(groups_.told.back().group, row_groups_.back().second) << "the one that is warm";
}

TEST_F(InFlightWorkTest, TheOnlyTextsGroupIsKnownWhileItHasNothingElse) {
  EXPECT_FALSE(work_.group_of_only_text());
  submit({1});
  const auto group = work_.group_of_only_text();
  ASSERT_TRUE(group);
  EXPECT_EQ(running(*group), std::vector<ItemKey>{1});
  submit({2});
  EXPECT_FALSE(work_.group_of_only_text());
}

}  // namespace
}  // namespace muster

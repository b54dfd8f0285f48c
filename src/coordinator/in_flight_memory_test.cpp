// Batches that find no memory on a device (in_flight_work_fixture.h).

#include <gtest/gtest.h>

#include "coordinator/in_flight_work_fixture.h"

namespace muster {
namespace {

const Error kFull{ErrorKind::ResourceExhausted, "out of memory"};

using InFlightMemoryTest = InFlightWorkTest;

TEST_F(InFlightMemoryTest, ABatchThatDoesNotFitComesBackSmaller) {
  rest(1, true);
  submit_short(12);
  ASSERT_EQ(running(0), keys_from(1, 6));
  fail(0, kFull);
  EXPECT_EQ(work_.token_budget(0), 30U) << "half of the sixty tokens that did not fit";
  EXPECT_TRUE(asked_.empty());
  work_.feed();
  answer_all();
  expect_rows(keys_from(1, 12));
}

TEST_F(InFlightMemoryTest, ATextThatDoesNotFitBesideOthersHasTheDeviceToItself) {
  rest(1, true);
  submit({1, 2});
  ASSERT_EQ(groups_.sent(0).size(), 2U);
  fail(0, kFull);
  EXPECT_TRUE(asked_.empty());
  work_.feed();
  EXPECT_EQ(running(0), std::vector<ItemKey>{2});
  EXPECT_EQ(groups_.sent(0).size(), 1U);
  answer(0);
  EXPECT_EQ(running(0), std::vector<ItemKey>{1});
  submit({3});
  EXPECT_EQ(groups_.sent(0).size(), 1U);
  // Until twenty batches were served so.
  for (ItemKey key = 4; key <= 21; ++key) {
    answer(0);
    ASSERT_EQ(running(0), std::vector<ItemKey>{key - 1});
    submit({key});
  }
  answer(0);
  ASSERT_EQ(running(0), std::vector<ItemKey>{21});
  submit({22, 23, 24});
  EXPECT_EQ(groups_.sent(0).size(), 2U);
  answer_all();
  expect_rows(keys_from(1, 24));
}

// It runs as it was once more, after it failed for another reason: not again and again.
TEST_F(InFlightMemoryTest, ASuspectedBatchThatDoesNotFitIsTakenApart) {
  rest(1, true);
  submit_short(6);
  ASSERT_EQ(running(0), keys_from(1, 6));
  fail(0);
  acquit(0);
  ASSERT_EQ(running(0), keys_from(1, 6));
  fail(0, kFull);
  work_.feed();
  EXPECT_EQ(running(0), std::vector<ItemKey>{1});
  answer_all();
  expect_rows(keys_from(1, 6));
  EXPECT_TRUE(failed_.empty() && groups_.convicted.empty());
}

// Its canary is right, each time: the text is too large for what is left.
TEST_F(InFlightMemoryTest, TextsThatDoNotFitHaveTheirErrorAndNoDeviceIsBlamed) {
  rest(1, true);
  for (ItemKey key = 1; key <= 3; ++key) {
    submit({key});
    for (int failures = 0; failures < 2; ++failures) {
      ASSERT_EQ(running(0), std::vector<ItemKey>{key});
      EXPECT_TRUE(failed_.find(key) == failed_.end());
      fail(0, kFull);
      acquit(0);
    }
    EXPECT_EQ(failed_.at(key).kind, ErrorKind::ResourceExhausted);
  }
  EXPECT_EQ(asked_.size(), 6U);
  EXPECT_TRUE(groups_.convicted.empty());
  submit({4});
  answer(0);
  expect_rows({4});
}

TEST_F(InFlightMemoryTest, WhereThereIsNoMemoryForTheCanaryEitherTheTextWaitsOrGoesElsewhere) {
  rest(1, true);
  submit({1});
  fail(0, kFull);
  EXPECT_EQ(asked_, std::vector<std::size_t>{0});
  models_.on(0)[kModel].memory.emplace();  // as the registry has it then
  work_.excuse(0, kModel + 1);
  EXPECT_TRUE(work_.is_accused(0)) << "another model's canary says nothing about it";
  work_.excuse(0, kModel);
  work_.update_group(0);
  EXPECT_FALSE(work_.is_accused(0));
  EXPECT_FALSE(work_.is_eligible(0));
  work_.feed();
  EXPECT_TRUE(groups_.sent(0).empty());
  rest(1, false);
  work_.feed();
  ASSERT_EQ(running(1), std::vector<ItemKey>{1});
  answer(1);
  expect_rows({1});
  EXPECT_TRUE(groups_.convicted.empty() && failed_.empty());
}

// A neighbour's memory comes and goes; a job would try for ever.
TEST_F(InFlightMemoryTest, ATextWhoseCanaryHasMemoryOnlyWithoutItFailsInTheEnd) {
  rest(1, true);
  submit({1});
  auto& memory = models_.on(0)[kModel].memory;
  for (int failures = 0; failures < 8; ++failures) {
    ASSERT_EQ(running(0), std::vector<ItemKey>{1}) << failures;
    EXPECT_TRUE(failed_.empty()) << failures;
    fail(0, kFull);
    memory.emplace();
    work_.excuse(0, kModel);
    memory.reset();  // asked again, it is right
    work_.update_group(0);
    work_.feed();
  }
  EXPECT_EQ(failed_.at(1).kind, ErrorKind::ResourceExhausted);
  EXPECT_TRUE(groups_.convicted.empty());
}

}  // namespace
}  // namespace muster

#include "coordinator/canary_book.h"

#include <gtest/gtest.h>

namespace muster {

bool operator==(const CanaryVerdict& left, const CanaryVerdict& right) {
  return left.device == right.device && left.outcome == right.outcome;
}

namespace {

using std::chrono::seconds;
using enum CanaryOutcome;
using Verdicts = std::vector<CanaryVerdict>;

const std::vector<float> kA{1, 2, 3};
const std::vector<float> kB{1, 2, 3.0000002F};
const TimePoint kNow{seconds(50)};

TEST(CanaryBookTest, OneBitOfDifferenceToAKeptRowIsWrong) {
  CanaryBook book({{"x", kA}});
  EXPECT_EQ(book.judge(0, "x", kA, kNow), (Verdicts{{0, Right}}));
  EXPECT_EQ(book.judge(1, "x", kB, kNow), (Verdicts{{1, Wrong}}));
  EXPECT_EQ(book.judge(1, "x", {1, 2}, kNow), (Verdicts{{1, Wrong}}));
}

TEST(CanaryBookTest, ANegativeZeroIsAnotherBit) {
  CanaryBook book({{"x", {0.0F}}});
  EXPECT_EQ(book.judge(0, "x", {-0.0F}, kNow), (Verdicts{{0, Wrong}}));
}

TEST(CanaryBookTest, TheFirstAnswerOfAClassIsTheReference) {
  CanaryBook book({});
  EXPECT_EQ(book.judge(0, "x", kA, kNow), (Verdicts{{0, Right}}));
  EXPECT_EQ(book.judge(1, "y", kB, kNow), (Verdicts{{1, Right}}));
  EXPECT_EQ(book.judge(2, "x", kA, kNow), (Verdicts{{2, Right}}));
  EXPECT_EQ(book.judge(1, "x", kB, kNow), (Verdicts{{1, Wrong}}));
}

TEST(CanaryBookTest, ARowIsKeptOnceItWasAnsweredTwice) {
  CanaryBook book({});
  book.judge(0, "x", kA, kNow);
  EXPECT_TRUE(book.rows().empty());
  book.judge(0, "x", kA, kNow);
  EXPECT_EQ(book.rows(), (std::map<std::string, std::vector<float>>{{"x", kA}}));
}

TEST(CanaryBookTest, ARowThatDevicesNeverAgreedOnIsNotKept) {
  CanaryBook book({});
  book.judge(0, "x", kA, kNow);
  for (int i = 0; i < 2; ++i) book.judge(1, "x", kB, kNow);
  for (int i = 0; i < 3; ++i) book.judge(0, "x", kA, kNow);
  EXPECT_TRUE(book.rows().empty());
}

TEST(CanaryBookTest, ADeviceThatContradictsItselfIsWrong) {
  CanaryBook book({});
  book.judge(0, "x", kA, kNow);
  EXPECT_EQ(book.judge(0, "x", kB, kNow), (Verdicts{{0, Wrong}}));
}

TEST(CanaryBookTest, TwoThatDisagreeAtFirstSightAreAskedAgain) {
  CanaryBook book({});
  book.judge(0, "x", kA, kNow);
  EXPECT_EQ(book.judge(1, "x", kB, kNow), (Verdicts{{0, Restart}, {1, Restart}}));
  EXPECT_TRUE(book.rows().empty());
  // The first one repeats itself: that alone says nothing about the other.
  EXPECT_EQ(book.judge(0, "x", kA, kNow), Verdicts{});
  // The second one now gives what the first one gives.
  EXPECT_EQ(book.judge(1, "x", kA, kNow), (Verdicts{{0, Right}, {1, Right}}));
  EXPECT_EQ(book.rows().at("x"), kA);
}

TEST(CanaryBookTest, ThreeOfFourAnswersOutvoteTheFirst) {
  CanaryBook book({});
  book.judge(0, "x", kB, kNow);
  book.judge(1, "x", kA, kNow);
  EXPECT_EQ(book.judge(0, "x", kA, kNow), (Verdicts{{0, Right}}));
  EXPECT_EQ(book.judge(1, "x", kA, kNow), (Verdicts{{1, Right}}));
}

TEST(CanaryBookTest, OfTwoThatStayWithTheirOwnTheLaterIsWrong) {
  CanaryBook book({});
  book.judge(0, "x", kA, kNow);
  book.judge(1, "x", kB, kNow);
  EXPECT_EQ(book.judge(1, "x", kB, kNow), Verdicts{});
  EXPECT_EQ(book.judge(0, "x", kA, kNow), (Verdicts{{0, Right}, {1, Wrong}}));
  EXPECT_EQ(book.judge(1, "x", kB, kNow), (Verdicts{{1, Wrong}}));
}

TEST(CanaryBookTest, AThirdDeviceDecidesADispute) {
  CanaryBook book({});
  book.judge(0, "x", kA, kNow);
  book.judge(1, "x", kB, kNow);
  EXPECT_EQ(book.judge(1, "x", kB, kNow), Verdicts{});
  EXPECT_EQ(book.judge(2, "x", kB, kNow), (Verdicts{{1, Right}, {2, Right}}));
  EXPECT_EQ(book.judge(0, "x", kA, kNow), (Verdicts{{0, Wrong}}));
}

TEST(CanaryBookTest, ADisputeDoesNotWaitForEverForADeviceThatIsGone) {
  CanaryBook book({});
  book.judge(0, "x", kA, kNow);
  book.judge(1, "x", kB, kNow);
  EXPECT_EQ(book.judge(1, "x", kB, kNow), Verdicts{});
  ASSERT_EQ(book.deadline(), kNow + seconds(60));
  EXPECT_EQ(book.on_time(kNow + seconds(59)), Verdicts{});
  // Two votes for B, one for A.
  EXPECT_EQ(book.on_time(kNow + seconds(60)), (Verdicts{{1, Right}}));
  EXPECT_FALSE(book.deadline());
}

}  // namespace
}  // namespace muster

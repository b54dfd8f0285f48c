#include "coordinator/step_watch.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kMost = seconds(60);

TimePoint at(Duration time) { return TimePoint{} + time; }

/// A step of so many tokens, from `from` on.
void do_step(StepWatch& watch, std::size_t token_count, Duration from, Duration took) {
  watch.expect(at(from), token_count);
  watch.on_step_done(at(from + took));
}

TEST(StepWatch, BeforeAStepWasMeasuredEachTokenHasHalfASecond) {
  StepWatch watch;
  watch.expect(at(seconds(100)), 512);
  EXPECT_EQ(watch.since(), at(seconds(100)));
  EXPECT_EQ(watch.until(kMost), at(seconds(100 + 60 + 256)));
  watch.expect(at(seconds(100)), 0);
  EXPECT_EQ(watch.until(kMost), at(milliseconds(160'500))) << "it is at one token at least";
}

TEST(StepWatch, TheLimitIsTenTimesWhatSuchAStepHasTaken) {
  StepWatch watch;
  do_step(watch, 512, seconds(0), seconds(4));
  watch.expect(at(seconds(4)), 512);
  EXPECT_EQ(watch.until(kMost), at(seconds(4 + 40)));
  do_step(watch, 1, seconds(8), milliseconds(125));
  watch.expect(at(seconds(9)), 1);
  EXPECT_EQ(watch.until(kMost), at(seconds(9 + 20))) << "20 s at least";
  watch.expect(at(seconds(9)), 512);
  EXPECT_EQ(watch.until(kMost), at(seconds(9 + 40))) << "each size for itself";
}

// A step of 256 tokens takes no longer than one of 512, and one of 512 no longer than four of 128.
TEST(StepWatch, AStepOfAnotherSizeIsPredictedWithTooMuchRatherThanTooLittle) {
  StepWatch larger;
  do_step(larger, 512, seconds(0), seconds(4));
  larger.expect(at(seconds(4)), 256);
  EXPECT_EQ(larger.until(kMost), at(seconds(4 + 40)));
  StepWatch smaller;
  do_step(smaller, 128, seconds(0), seconds(4));
  smaller.expect(at(seconds(4)), 512);
  EXPECT_EQ(smaller.until(kMost), at(seconds(4 + 160)));
}

// 8 s for a token would be 80 s.
TEST(StepWatch, TheLimitIsNeverLongerThanBeforeAnythingWasMeasured) {
  StepWatch watch;
  do_step(watch, 1, seconds(0), seconds(8));
  watch.expect(at(seconds(8)), 1);
  EXPECT_EQ(watch.until(kMost), at(milliseconds(68'500)));
  EXPECT_EQ(watch.until(seconds(1)), at(milliseconds(9'500))) << "nor than what was asked for";
  do_step(watch, 1, seconds(8), std::chrono::hours(2'000'000));
  watch.expect(at(seconds(8)), 1);
  EXPECT_EQ(watch.until(kMost), at(milliseconds(68'500)));
}

// Stopped for 15 s (SIGSTOP, SIGCONT): it goes on, and such a step is allowed more for a while.
// Of the five last steps the mean counts: 4 s + (15 s - 4 s) / 5 = 6.2 s.
TEST(StepWatch, AStepThatWasInterruptedTeachesALittle) {
  StepWatch watch;
  do_step(watch, 512, seconds(0), seconds(4));
  do_step(watch, 512, seconds(4), seconds(15));
  watch.expect(at(seconds(19)), 512);
  const std::chrono::duration<double> allowed = watch.until(kMost) - watch.since();
  EXPECT_NEAR(allowed.count(), 62, 1e-6);
}

TEST(StepWatch, AStepWhoseTimeIsNotKnownTeachesNothing) {
  StepWatch watch;
  do_step(watch, 512, seconds(0), seconds(4));
  watch.expect(at(seconds(4)), 512);
  watch.start_over(at(seconds(60)));
  EXPECT_EQ(watch.until(kMost), at(seconds(60 + 40)));
  watch.on_step_done(at(seconds(99)));
  watch.expect(at(seconds(99)), 512);
  EXPECT_EQ(watch.until(kMost), at(seconds(99 + 40)));
}

TEST(StepWatch, TheFirstStepAfterAMinuteOfSilenceMayTakeAsLongAsTheFirstOfAll) {
  StepWatch watch;
  do_step(watch, 512, seconds(0), seconds(4));
  watch.expect(at(seconds(4)), 1);
  watch.start_over(at(seconds(64)));
  EXPECT_EQ(watch.until(kMost), at(milliseconds(124'500)));
  watch.expect(at(seconds(64)), 512);
  EXPECT_EQ(watch.until(kMost), at(seconds(64 + 316)));
  watch.on_step_done(at(seconds(68)));
  watch.expect(at(seconds(68)), 512);
  EXPECT_EQ(watch.until(kMost), at(seconds(68 + 40)));
}

TEST(StepWatch, AfterAQuarterOfTheLimitItIsLate) {
  StepWatch watch;
  watch.expect(at(seconds(0)), 8);
  EXPECT_FALSE(watch.is_late(at(milliseconds(15'999)), kMost));
  EXPECT_TRUE(watch.is_late(at(seconds(16)), kMost)) << "of 64 s";
  do_step(watch, 8, seconds(20), seconds(1));
  watch.expect(at(seconds(21)), 8);
  EXPECT_FALSE(watch.is_late(at(milliseconds(25'999)), kMost));
  EXPECT_TRUE(watch.is_late(at(seconds(26)), kMost)) << "of 20 s";
}

}  // namespace
}  // namespace muster

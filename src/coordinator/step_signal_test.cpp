#include "coordinator/step_signal.h"

#include <gtest/gtest.h>
#include <poll.h>

namespace muster {
namespace {

bool is_readable(const StepSignal& signal) {
  pollfd waiting{signal.fd(), POLLIN, 0};
  return ::poll(&waiting, 1, 0) == 1;
}

TEST(StepSignal, WhatIsDueIsSeenByThoseWhoAskAndWakesNobody) {
  StepSignal signal;
  EXPECT_FALSE(signal.is_due());
  signal.make_due();
  EXPECT_TRUE(signal.is_due());
  EXPECT_FALSE(is_readable(signal));
  EXPECT_TRUE(signal.begin_step());
  EXPECT_FALSE(signal.is_due());
  signal.end_step();
  EXPECT_FALSE(signal.begin_step()) << "it was due once";
}

TEST(StepSignal, AWakeUpLastsUntilTheNextStep) {
  StepSignal signal;
  signal.change();
  signal.wake();
  EXPECT_TRUE(is_readable(signal));
  signal.make_due();
  signal.settle();
  EXPECT_TRUE(signal.is_due()) << "what woke the loop is for the step";
  EXPECT_TRUE(signal.begin_step());
  EXPECT_FALSE(is_readable(signal));
  EXPECT_TRUE(signal.take_change());
  EXPECT_FALSE(signal.take_change());
}

TEST(StepSignal, InAStepNobodyIsWokenForWhatTheStepDoesAnyway) {
  StepSignal signal;
  signal.begin_step();
  signal.make_due();
  signal.change();
  EXPECT_FALSE(signal.is_due());
  EXPECT_FALSE(is_readable(signal));
  EXPECT_TRUE(signal.take_change()) << "its owner hears of the change all the same";
  signal.end_step();
  signal.make_due();
  signal.settle();
  EXPECT_FALSE(signal.is_due());
}

}  // namespace
}  // namespace muster

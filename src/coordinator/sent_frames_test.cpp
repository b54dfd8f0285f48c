#include "coordinator/sent_frames.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;

constexpr TimePoint kStart{};

SentFrame frame(std::uint64_t id, FrameKind kind = FrameKind::Batch, ModelId model = 1) {
  return {.id = id, .kind = kind, .model = model, .sent_at = kStart};
}

TEST(SentFrames, AsManyRunAsThereAreLanesAndTheNextBeginsWhenOneIsAnswered) {
  SentFrames sent;
  sent.set_lane_count(2);
  for (std::uint64_t id = 1; id <= 4; ++id) {
    EXPECT_TRUE(sent.has_room());
    sent.push(frame(id), kStart + milliseconds(id));
  }
  EXPECT_FALSE(sent.has_room()) << "two in each lane";
  EXPECT_EQ(sent.running(), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(sent.find(2)->running_since, kStart + milliseconds(2));
  EXPECT_FALSE(sent.find(3)->running_since);

  // The younger of the running ones is answered first: the third takes its lane.
  const auto taken = sent.take(2, kStart + milliseconds(10));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->id, 2U);
  EXPECT_EQ(sent.running(), (std::vector<std::uint64_t>{1, 3}));
  EXPECT_EQ(sent.find(3)->running_since, kStart + milliseconds(10));
  EXPECT_EQ(sent.running_for(kStart + milliseconds(11)), milliseconds(10));
  EXPECT_FALSE(sent.take(2, kStart + milliseconds(12))) << "it is answered";
}

TEST(SentFrames, ALaneThatIsFoundLaterRunsWhatWaitedFromTheNextChange) {
  SentFrames sent;
  sent.push(frame(1), kStart);
  sent.push(frame(2), kStart);
  EXPECT_FALSE(sent.find(2)->running_since);
  sent.set_lane_count(3);
  sent.push(frame(3), kStart + milliseconds(5));
  EXPECT_EQ(sent.find(2)->running_since, kStart + milliseconds(5));
}

TEST(SentFrames, ClocksThatAreRestartedForgetWhatHeldTheFramesUp) {
  SentFrames sent;
  sent.push(frame(1), kStart);
  sent.push(frame(2), kStart);
  sent.restart_clocks(kStart + milliseconds(100));
  EXPECT_EQ(sent.running_for(kStart + milliseconds(130)), milliseconds(30));
  EXPECT_FALSE(sent.find(2)->running_since) << "it still waits";
}

TEST(SentFrames, WhatIsExcusedDoesNotCountAndWhatWasBeforeDoes) {
  SentFrames sent;
  sent.set_lane_count(2);
  sent.push(frame(1), kStart);
  sent.push(frame(2), kStart + milliseconds(60));
  sent.push(frame(3), kStart + milliseconds(60));
  sent.excuse(kStart + milliseconds(40), kStart + milliseconds(100));
  EXPECT_EQ(sent.running_for(kStart + milliseconds(110)), milliseconds(50)) << "40 and 10";
  EXPECT_EQ(sent.find(2)->running_since, kStart + milliseconds(100)) << "it began meanwhile";
  EXPECT_FALSE(sent.find(3)->running_since) << "it still waits";
}

TEST(SentFrames, KnowsWhichModelsAndCanariesAreUnderWay) {
  SentFrames sent;
  EXPECT_EQ(sent.running_for(kStart), Duration{0});
  sent.push(frame(1, FrameKind::Batch, 1), kStart);
  sent.push(frame(2, FrameKind::Canary, 2), kStart);
  sent.push(frame(3, FrameKind::Trial, 3), kStart);
  EXPECT_TRUE(sent.has(1) && sent.has(2) && sent.has(3));
  EXPECT_FALSE(sent.has(4));
  EXPECT_FALSE(sent.has_canary(1));
  EXPECT_TRUE(sent.has_canary(2));
  EXPECT_FALSE(sent.has_canary(3)) << "a trial's text is the canary's, and is no canary";
  sent.clear();
  EXPECT_TRUE(sent.empty());
}

}  // namespace
}  // namespace muster

#include "coordinator/silence.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Silence, IsFiveTimesWhatTheDeviceItselfHasTaken) {
  EXPECT_EQ(silence_allowed({.own = seconds(3)}), seconds(15));
  EXPECT_EQ(silence_allowed({.own = milliseconds(10)}), seconds(1));
  EXPECT_EQ(silence_allowed({.own = seconds(3), .canary = milliseconds(1)}), seconds(15));
  EXPECT_EQ(silence_allowed({.own = seconds(100)}), seconds(500));
}

// 4,096 tokens: nine times, as attention takes time with the square of a length.
TEST(Silence, GrowsWithTheLongestText) {
  EXPECT_EQ(silence_allowed({.own = milliseconds(200), .longest_text = 4096}), seconds(9));
  EXPECT_EQ(silence_allowed({.own = milliseconds(10), .longest_text = 4096}), seconds(1));
  EXPECT_EQ(silence_allowed({.canary = milliseconds(500), .longest_text = 512}), seconds(5));
  EXPECT_EQ(silence_allowed({.peer = seconds(1), .longest_text = 1024}), seconds(15));
}

TEST(Silence, OfAFirstBatchIsWhatCanaryOrPeerTell) {
  EXPECT_EQ(silence_allowed({}), seconds(60));
  EXPECT_EQ(silence_allowed({.canary = milliseconds(10)}), seconds(2));
  EXPECT_EQ(silence_allowed({.canary = seconds(1)}), seconds(5));
  EXPECT_EQ(silence_allowed({.peer = milliseconds(10)}), seconds(5));
  EXPECT_EQ(silence_allowed({.canary = seconds(4), .peer = milliseconds(10)}), seconds(5));
  EXPECT_EQ(silence_allowed({.canary = seconds(50)}), seconds(60));
}

TEST(Silence, BesideALoadIsAtLeastTenSeconds) {
  EXPECT_EQ(silence_allowed({.own = milliseconds(10), .is_beside_load = true}), seconds(10));
  EXPECT_EQ(silence_allowed({.own = seconds(3), .is_beside_load = true}), seconds(15));
}

TEST(Silence, BeforeAGreetingIsShortOnceAnotherHasGreeted) {
  EXPECT_EQ(greeting_allowed(std::nullopt, 0), seconds(120));
  EXPECT_EQ(greeting_allowed(std::nullopt, 5), seconds(120));
  EXPECT_EQ(greeting_allowed(milliseconds(400), 0), seconds(10));
  EXPECT_EQ(greeting_allowed(milliseconds(800), 0), seconds(16));
  EXPECT_EQ(greeting_allowed(milliseconds(400), 1), seconds(40));
  EXPECT_EQ(greeting_allowed(milliseconds(400), 2), seconds(120));
  EXPECT_EQ(greeting_allowed(milliseconds(400), 1'000'000), seconds(120));
  EXPECT_EQ(greeting_allowed(seconds(6), 0), seconds(120));
  EXPECT_EQ(greeting_allowed(Duration::max(), 0), seconds(120));
}

TEST(Silence, TheEarliestEndOfSeveralCounts) {
  const Silence late{TimePoint{} + seconds(1), seconds(60)};
  const Silence early{TimePoint{} + seconds(3), seconds(1)};
  EXPECT_EQ(earlier(std::nullopt, late)->until(), late.until());
  EXPECT_EQ(earlier(late, early)->until(), early.until());
  EXPECT_EQ(earlier(early, late)->until(), early.until());
}

}  // namespace
}  // namespace muster

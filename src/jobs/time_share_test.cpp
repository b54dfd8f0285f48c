#include "jobs/time_share.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;

TEST(TimeShare, RestsForTheOtherPartsOfTheTime) {
  TimeShare share(20);
  const TimePoint begin{milliseconds(5000)};
  EXPECT_TRUE(share.is_due(begin));
  share.note(begin, begin + milliseconds(10));
  // 10 ms of work and 190 ms without.
  EXPECT_FALSE(share.is_due(begin + milliseconds(199)));
  EXPECT_TRUE(share.is_due(begin + milliseconds(200)));
  share.note(begin + milliseconds(300), begin + milliseconds(301));
  EXPECT_FALSE(share.is_due(begin + milliseconds(319)));
  EXPECT_TRUE(share.is_due(begin + milliseconds(320)));
}

TEST(TimeShare, WhatTakesNoTimeIsAlwaysDue) {
  TimeShare share(20);
  const TimePoint now{milliseconds(5000)};
  share.note(now, now);
  EXPECT_TRUE(share.is_due(now));
}

}  // namespace
}  // namespace muster

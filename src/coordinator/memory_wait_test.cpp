#include "coordinator/memory_wait.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::seconds;

TEST(MemoryWaitTest, ThePauseDoublesToAMinute) {
  MemoryWait wait;
  TimePoint now{seconds(100)};
  std::uint32_t tries = 0;
  for (const int pause : {1, 2, 4, 8, 16, 32, 60, 60}) {
    wait.on_full(now);
    EXPECT_EQ(wait.pause(), seconds(pause));
    EXPECT_EQ(wait.at(), now + seconds(pause));
    EXPECT_EQ(wait.full_count(), ++tries);
    now = wait.at();
  }
}

TEST(MemoryWaitTest, AnAnswerEndsTheTriesUntilThereIsNoMemoryAgain) {
  MemoryWait wait;
  wait.on_full(TimePoint{seconds(100)});
  wait.on_answered();
  EXPECT_EQ(wait.at(), TimePoint::max());
  wait.on_full(TimePoint{seconds(200)});
  EXPECT_EQ(wait.at(), TimePoint{seconds(202)});
}

}  // namespace
}  // namespace muster

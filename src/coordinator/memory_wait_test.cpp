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

}  // namespace
}  // namespace muster

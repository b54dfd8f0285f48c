#include "worker/memory_notices.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MemoryNoticesTest : public testing::Test {
 protected:
  // What is told after so much more time; "" where it is nothing.
  std::string look(std::size_t tokens, Duration later = Duration{0}) {
    now_ += later;
    return notices_.look(tokens, now_).value_or("");
  }

  MemoryNotices notices_{1000};
  TimePoint now_{};
};

TEST_F(MemoryNoticesTest, EachNewLowIsToldOnce) {
  EXPECT_EQ(look(1000), "");
  EXPECT_EQ(look(400), "the GPU's memory is short: it computes 400 tokens at once, not 1000");
  EXPECT_EQ(look(400), "") << "the other lane";
  EXPECT_EQ(look(800), "");
  EXPECT_EQ(look(400), "");
  EXPECT_EQ(look(200), "the GPU's memory is short: it computes 200 tokens at once, not 400");
}

TEST_F(MemoryNoticesTest, ThatAllIsThereAgainIsToldWhenItHasBeenForTenSeconds) {
  EXPECT_NE(look(200), "");
  EXPECT_EQ(look(400, seconds(20)), "") << "a part of it";
  EXPECT_EQ(look(1000, seconds(20)), "");
  EXPECT_EQ(look(1000, milliseconds(9'999)), "");
  EXPECT_EQ(look(1000, milliseconds(1)),
            "the GPU's memory is there again: it computes 1000 tokens at once, not 200");
  EXPECT_EQ(look(1000, seconds(20)), "");
  EXPECT_EQ(look(500), "the GPU's memory is short: it computes 500 tokens at once, not 1000");
}

TEST_F(MemoryNoticesTest, ABatchThatFitsIntoAPassIsNotCut) {
  EXPECT_FALSE(notices_.was_cut(3000, 1000)) << "three passes, as always";
  EXPECT_TRUE(notices_.was_cut(3000, 999));
  EXPECT_TRUE(notices_.was_cut(600, 500));
  EXPECT_FALSE(notices_.was_cut(500, 500));
}

// A budget that was halved once is whole after 32 passes, and the next large one halves it again.
TEST_F(MemoryNoticesTest, MemoryThatStaysShortIsToldOnce) {
  EXPECT_NE(look(500), "");
  for (int round = 0; round < 100; ++round) {
    ASSERT_EQ(look(1000, seconds(6)), "");
    ASSERT_EQ(look(500, seconds(6)), "");
  }
}

}  // namespace
}  // namespace muster

#include "terminal/style.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Styled, PutsSequencesAroundTheTextAndEndsThem) {
  EXPECT_EQ(styled("no", kBad), "\x1b[0;1;38;5;202mno\x1b[0m");
  EXPECT_EQ(styled("x", {.role = Role::Text, .is_reversed = true}), "\x1b[0;7mx\x1b[0m");
}

TEST(Styled, LeavesAloneWhatHasNoColour) {
  EXPECT_EQ(styled("no", kBad, false), "no");
  EXPECT_EQ(styled("plain", {}), "plain");
  EXPECT_EQ(styled("", kBad), "") << "nothing is no reason for a sequence";
}

TEST(StyledStart, ColoursTheFirstBytesAlone) {
  EXPECT_EQ(styled_start("ok: fine", 2, kQuiet, true), "\x1b[0;38;5;245mok\x1b[0m: fine");
  EXPECT_EQ(styled_start("ok", 9, kQuiet, true), "\x1b[0;38;5;245mok\x1b[0m");
  EXPECT_EQ(styled_start("ok", 2, kQuiet, false), "ok");
}

}  // namespace
}  // namespace muster

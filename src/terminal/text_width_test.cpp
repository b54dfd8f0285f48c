#include "terminal/text_width.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("naïve"), 5U);
  EXPECT_EQ(display_width("日本"), 4U);
  EXPECT_EQ(display_width("한국"), 4U);
  EXPECT_EQ(display_width("🙂"), 2U);
  EXPECT_EQ(display_width("e\u0301"), 1U);  // e and a combining acute
  EXPECT_EQ(display_width("\xFF\xFE"), 2U);
}

TEST(FitWidth, CutsAtACharacterAndMarksIt) {
  EXPECT_EQ(fit_width("abc", 3), "abc");
  EXPECT_EQ(fit_width("abcd", 3), "ab…");
  EXPECT_EQ(fit_width("日本語", 5), "日本…");  // 2 + 2 + 1
  EXPECT_EQ(fit_width("日本語", 4), "日…");    // the second would leave no column for the mark
  EXPECT_EQ(fit_width("abc", 1), "…");
  EXPECT_EQ(fit_width("abc", 0), "");
}

TEST(Printable, LeavesNothingThatMovesACursor) {
  EXPECT_EQ(printable("a\nb\tc"), "a b c");
  EXPECT_EQ(printable("\033[2Jx"), " [2Jx");
  EXPECT_EQ(printable("x\u0085y"), "x y");  // a C1 control
  EXPECT_EQ(printable("x\u202Ey"), "x y");  // right-to-left override
  EXPECT_EQ(printable("x\u2066y"), "x y");  // the first of the isolates
  EXPECT_EQ(printable("x\u2069y"), "x y");  // and the last
  EXPECT_EQ(printable("a\xC3"), "a?");      // cut in the middle
  EXPECT_EQ(printable("naïve 日本"), "naïve 日本");
}

TEST(PrintableLines, LeavesLinesAndTabsAndNothingElseThatMovesACursor) {
  EXPECT_EQ(printable_lines("a\n\tb\n"), "a\n\tb\n");
  EXPECT_EQ(printable_lines("a\rb\033]0;x\007\n"), "a b ]0;x \n");
  EXPECT_EQ(printable_lines("x\u202Ey"), "x y");
  EXPECT_EQ(printable_lines(std::string_view("x\0y", 3)), "x y");
}

}  // namespace
}  // namespace muster

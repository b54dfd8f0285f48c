#include "terminal/text_wrap.h"

#include <gtest/gtest.h>

#include "terminal/terminal_info.h"

namespace muster {
namespace {

TEST(Wrapped, BreaksBetweenWordsAlone) {
  EXPECT_EQ(wrapped("one two three", {.width = 8}), "one two\nthree\n");
  EXPECT_EQ(wrapped("one two three", {.width = 13}), "one two three\n");
  EXPECT_EQ(wrapped("a incomprehensible b", {.width = 6}), "a\nincomprehensible\nb\n")
      << "a long word stays whole";
}

TEST(Wrapped, IsOneLineWhereThereIsNoWidth) {
  EXPECT_EQ(wrapped("one  two", {.width = kUnboundedWidth, .head = "  ", .indent = 4}),
            "  one two\n");
}

TEST(Wrapped, WhatFitsKeepsItsSpaces) {
  const Wrap wrap{.width = 10, .head = "a: ", .indent = 2};
  EXPECT_EQ(wrapped_where_wider("b  c", wrap), "a: b  c\n");
  EXPECT_EQ(wrapped_where_wider("b  c\nd ef", wrap), "a: b c d\n  ef\n");
}

TEST(Wrapped, BeginsEveryLineAtTheIndent) {
  EXPECT_EQ(wrapped("one two three", {.width = 10, .head = padded("ok", 4), .indent = 4}),
            "ok  one\n    two\n    three\n");
  EXPECT_EQ(wrapped("one two", {.width = 12, .head = "a longer ", .indent = 4}),
            "a longer one\n    two\n");
}

TEST(Wrapped, CountsColumnsAndLetsNothingMoveTheCursor) {
  EXPECT_EQ(wrapped("漢字 漢字", {.width = 8}), "漢字\n漢字\n");  // 4 + 1 + 4
  EXPECT_EQ(wrapped("a\nb\x1b[2J", {.width = 80}), "a b [2J\n");
}

TEST(Wrapped, OfNothingIsItsHead) { EXPECT_EQ(wrapped("", {.head = "head"}), "head\n"); }

TEST(FitWholeWords, CutsBehindAWholeWord) {
  EXPECT_EQ(fit_whole_words("AMD EPYC 9654", 13), "AMD EPYC 9654");
  EXPECT_EQ(fit_whole_words("AMD EPYC 9654", 12), "AMD EPYC…");
  EXPECT_EQ(fit_whole_words("AMD EPYC 9654", 9), "AMD EPYC…");
  EXPECT_EQ(fit_whole_words("AMD EPYC 9654", 8), "AMD…");
  EXPECT_EQ(fit_whole_words("AMD EPYC 9654", 3), "…");
  EXPECT_EQ(fit_whole_words("AMD", 0), "");
}

TEST(Padded, CountsColumns) {
  EXPECT_EQ(padded("漢", 4), "漢  ");
  EXPECT_EQ(padded("longer", 4), "longer");
}

TEST(WidestWord, IsInColumns) {
  EXPECT_EQ(widest_word("a bcd 漢字漢"), 6U);
  EXPECT_EQ(widest_word("  "), 0U);
}

}  // namespace
}  // namespace muster

#include "terminal/table.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Table, AlignsColumns) {
  Table table({{"device"}, {"texts", Align::Right}});
  table.add_row({"cpu:0", "9"});
  table.add_row({"cpu:10", "12,345"});
  EXPECT_EQ(table.render(80),
            "device   texts\n"
            "cpu:0        9\n"
            "cpu:10  12,345\n");
}

TEST(Table, WithoutTitlesHasNoHeader) {
  Table table({{""}, {""}});
  table.add_row({"a", "b"});
  EXPECT_EQ(table.render(80), "a  b\n");
}

TEST(Table, ShrinksOnlyWhatMayShrink) {
  Table table({{"score"}, {"text", Align::Left, true}});
  table.add_row({"0.912345", "abcdefghijklmnopqrstuvwxyz"});
  // 8 + 2 + 26 = 36 columns into 24: the text gets 24 - 10 = 14, its last being the mark.
  EXPECT_EQ(table.render(24),
            "score     text\n"
            "0.912345  abcdefghijklm…\n");
}

TEST(Table, StopsShrinkingAtEightColumns) {
  Table table({{"text", Align::Left, true}});
  table.add_row({"abcdefghijkl"});
  EXPECT_EQ(table.render(3), "text\nabcdefg…\n");
}

TEST(Table, AlignsByDisplayWidth) {
  Table table({{""}, {""}});
  table.add_row({"日本", "x"});
  table.add_row({"abcd", "y"});
  EXPECT_EQ(table.render(80), "日本  x\nabcd  y\n");
}

}  // namespace
}  // namespace muster

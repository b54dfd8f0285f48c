#include "terminal/table.h"

#include <gtest/gtest.h>

#include "terminal/terminal_info.h"

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

TEST(Table, CutsBetweenWordsOnlyWhatMayShrink) {
  Table table({{"score"}, {"text", Align::Left, true}});
  table.add_row({"0.912345", "where did we leave the keys"});
  // 8 + 2 + 27 = 37 columns into 24: the text gets 14, and "where did we" with the mark takes 13.
  EXPECT_EQ(table.render(24),
            "score     text\n"
            "0.912345  where did we…\n");
  EXPECT_EQ(table.render(kUnboundedWidth),
            "score     text\n"
            "0.912345  where did we leave the keys\n");
}

// A text as long as a book among many rows: each column less must not look at every row again.
TEST(Table, CutsALongTextAmongManyRows) {
  constexpr std::size_t kRows = 2000;
  std::string book = "a";
  while (book.size() < 200'001) book += " a";
  Table table({{"n"}, {"text", Align::Left, true}});
  table.add_row({"1", book});
  std::string expected = "n  text\n1  a a a…\n";
  for (std::size_t i = 0; i < kRows; ++i) {
    table.add_row({"2", "b"});
    expected += "2  b\n";
  }
  EXPECT_EQ(table.render(10), expected);
}

TEST(Table, NeverBreaksAWord) {
  Table table({{"text", Align::Left, true}});
  table.add_row({"abcdefghijkl mnop"});
  EXPECT_EQ(table.render(3), "text\nabcdefghijkl…\n");
}

Table of_devices() {
  Table table({{"device"},
               {.title = "model", .may_shrink = true},
               {.title = "driver", .leaves = 1},
               {.title = "in use", .align = Align::Right},
               {.title = "UUID", .leaves = 2, .goes_below = true}});
  table.add_row({"cuda:0", "H200", "590.48", "98 GB", "GPU-0123456789"});
  table.add_row({"cpu:0", "EPYC", "", "3 GB", ""});
  return table;
}

// All of it takes 6 + 5 + 6 + 6 + 14 columns and four gaps: 45.
TEST(Table, ColumnsLeaveInTheirOrder) {
  EXPECT_EQ(of_devices().render(45),
            "device  model  driver  in use  UUID\n"
            "cuda:0  H200   590.48   98 GB  GPU-0123456789\n"
            "cpu:0   EPYC             3 GB\n");
  EXPECT_EQ(of_devices().render(44),
            "device  model  driver  in use\n"
            "cuda:0  H200   590.48   98 GB\n"
            "    UUID GPU-0123456789\n"
            "cpu:0   EPYC             3 GB\n");
  EXPECT_EQ(of_devices().render(28),
            "device  model  in use\n"
            "cuda:0  H200    98 GB\n"
            "    UUID GPU-0123456789\n"
            "cpu:0   EPYC     3 GB\n");
}

TEST(Table, ColoursTitlesAndCells) {
  Table table({{"device"}, {"state"}});
  table.add_row({"a", {"down", kBad}});
  EXPECT_EQ(table.render(80, true),
            "\x1b[0;1;38;5;74mdevice\x1b[0m  \x1b[0;1;38;5;74mstate\x1b[0m\n"
            "a       \x1b[0;1;38;5;202mdown\x1b[0m\n");
}

TEST(Table, AlignsByDisplayWidth) {
  Table table({{""}, {""}});
  table.add_row({"日本", "x"});
  table.add_row({"abcd", "y"});
  EXPECT_EQ(table.render(80), "日本  x\nabcd  y\n");
}

}  // namespace
}  // namespace muster

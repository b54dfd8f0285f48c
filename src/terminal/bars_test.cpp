#include "terminal/bars.h"

#include <gtest/gtest.h>

#include <array>

namespace muster {
namespace {

TEST(Bar, FillsByEighths) {
  EXPECT_EQ(bar_text(0.5, 4, CharacterSet::Utf8), "██  ");
  EXPECT_EQ(bar_text(0.65625, 4, CharacterSet::Utf8), "██▋ ");  // 21 of 32 eighths
  EXPECT_EQ(bar_text(1.0, 4, CharacterSet::Utf8), "████");
}

TEST(Bar, FillsByWholeMarksInAscii) {
  EXPECT_EQ(bar_text(0.5, 4, CharacterSet::Ascii), "##  ");
  EXPECT_EQ(bar_text(0.65, 4, CharacterSet::Ascii), "### ");  // 2.6 of 4
}

TEST(Bar, TellsLittleFromNothing) {
  EXPECT_EQ(bar_text(0.001, 3, CharacterSet::Utf8), "▏  ");
  EXPECT_EQ(bar_text(0.0, 3, CharacterSet::Utf8), "   ");
}

TEST(Bar, StaysWithinItsWidth) {
  EXPECT_EQ(bar_text(1.7, 3, CharacterSet::Ascii), "###");
  EXPECT_EQ(bar_text(-1, 3, CharacterSet::Ascii), "   ");
  EXPECT_EQ(bar_text(0.5, 0, CharacterSet::Utf8), "");
}

TEST(Sparkline, ShowsHeightsAndGaps) {
  const std::array<std::optional<double>, 5> values{0.0, 1.0, std::nullopt, 0.5, 2.0};
  EXPECT_EQ(sparkline_text(values, CharacterSet::Utf8), "▁█ ▅█");
  EXPECT_EQ(sparkline_text(values, CharacterSet::Ascii), "_# =#");
}

TEST(Plot, FillsColumnsFromBelow) {
  // Two rows are 16 eighths: 16, 9.6 (10), 0 (the lowest mark), unknown, 2.
  const std::array<std::optional<double>, 5> values{1.0, 0.6, 0.0, std::nullopt, 0.125};
  EXPECT_EQ(plot_rows(values, 2, CharacterSet::Utf8), (std::vector<std::string>{"█▂   ", "██▁ ▂"}));
  // And four halves: 4, 2.4 (2), the lowest mark, unknown, 0.5 (1: halves are rounded up).
  EXPECT_EQ(plot_rows(values, 2, CharacterSet::Ascii),
            (std::vector<std::string>{"#    ", "##: :"}));
}

TEST(Plot, OfNoHeightHasNoRows) {
  EXPECT_TRUE(plot_rows({}, 0, CharacterSet::Utf8).empty());
  EXPECT_EQ(plot_rows({}, 1, CharacterSet::Utf8), std::vector<std::string>{""});
}

}  // namespace
}  // namespace muster

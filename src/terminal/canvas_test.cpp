#include "terminal/canvas.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Canvas, PutsTextByColumnsAndCutsAtTheEdge) {
  Canvas canvas(6, 2, CharacterSet::Utf8);
  EXPECT_EQ(canvas.put(0, 1, "abc"), 3U);
  EXPECT_EQ(canvas.put(1, 4, "xyz"), 2U);
  EXPECT_EQ(canvas.put(2, 0, "below the screen"), 0U);
  EXPECT_EQ(canvas.put(0, 9, "beside it"), 0U);
  EXPECT_EQ(canvas.text(), " abc\n    xy\n");
}

TEST(Canvas, GivesWideCharactersTwoCellsAndCombiningMarksNone) {
  Canvas canvas(5, 1, CharacterSet::Utf8);
  EXPECT_EQ(canvas.put(0, 0, "\u6f22e\u0301\u5b57x"), 5U);  // 2 + 1 + 2; the x is beyond
  EXPECT_EQ(canvas.cell(0, 0).text, "\u6f22");
  EXPECT_EQ(canvas.cell(0, 1).text, "");
  EXPECT_EQ(canvas.cell(0, 2).text, "e\u0301");
  EXPECT_EQ(canvas.text(), "\u6f22e\u0301\u5b57\n");
}

TEST(Canvas, DoesNotShowHalfOfAWideCharacter) {
  Canvas canvas(3, 1, CharacterSet::Utf8);
  EXPECT_EQ(canvas.put(0, 0, "ab\u6f22"), 2U);
  EXPECT_EQ(canvas.text(), "ab\n");
}

TEST(Canvas, ShowsNoControlCharacters) {
  Canvas canvas(8, 1, CharacterSet::Utf8);
  canvas.put(0, 0, "a\x1b[2Jb\xff");
  EXPECT_EQ(canvas.text(), "a [2Jb?\n");
}

TEST(Canvas, KeepsToAsciiWhereAsked) {
  Canvas canvas(8, 1, CharacterSet::Ascii);
  EXPECT_EQ(canvas.put(0, 0, "a\u6f22e\u0301…"), 5U);
  EXPECT_EQ(canvas.text(), "a??e~\n");
}

TEST(Canvas, CutsAndAlignsFields) {
  Canvas canvas(12, 2, CharacterSet::Utf8);
  canvas.put_left(0, 0, 5, "a tensor");
  canvas.put_right(0, 6, 5, "12");
  canvas.put_right(1, 0, 3, "12345");  // half a number would be another one
  EXPECT_EQ(canvas.text(), "a…       12\n  …\n");
}

TEST(Canvas, WritesStylesAsEscapeSequencesAndEndsThem) {
  Canvas canvas(6, 2, CharacterSet::Utf8);
  canvas.put(0, 0, "a", {.role = Role::Bad, .is_bold = true});
  canvas.put(0, 1, "b");
  canvas.put(1, 0, "c");
  canvas.reverse(1, 0, 2);
  EXPECT_EQ(canvas.ansi(), "\x1b[0;1;38;5;202ma\x1b[0mb\n\x1b[0;7mc \x1b[0m\n");
  EXPECT_EQ(canvas.text(), "ab\nc\n");
}

}  // namespace
}  // namespace muster

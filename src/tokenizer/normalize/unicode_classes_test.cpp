#include "tokenizer/normalize/unicode_classes.h"

#include <gtest/gtest.h>

#include <string>

#include "tokenizer/utf8.h"

namespace muster {
namespace {

TEST(CharacterClasses, AreWhatTheLibraryFinds) {
  EXPECT_TRUE(is_letter(character_classes(U'é')));
  EXPECT_TRUE(is_number(character_classes(U'½')));
  EXPECT_TRUE(is_in_class(0x3000, CharacterClass::Space));
  // U+180E lost White_Space in Unicode 6.3, although many engines still have it in \s.
  EXPECT_FALSE(is_in_class(0x180E, CharacterClass::Space));
  // '$' is a symbol to Unicode, but ASCII punctuation to BERT.
  EXPECT_EQ(general_category(character_classes(U'$')), GeneralCategory::Sc);
  EXPECT_TRUE(is_in_class(U'$', CharacterClass::Punctuation));
  EXPECT_TRUE(is_in_class(0x301, CharacterClass::BertAccent));
  // U+0903 is a spacing mark: StripAccents drops it, BertNormalizer does not.
  EXPECT_TRUE(is_in_class(0x903, CharacterClass::StrippedAccent));
  EXPECT_FALSE(is_in_class(0x903, CharacterClass::BertAccent));
  // A line end is a control character that stays.
  EXPECT_TRUE(is_in_class(0x0B, CharacterClass::BertRemoved));
  EXPECT_FALSE(is_in_class(U'\n', CharacterClass::BertRemoved));
  EXPECT_TRUE(is_in_class(0xFFFD, CharacterClass::BertRemoved));
}

TEST(CharacterClasses, CoverEveryNumberWithoutAGap) {
  char32_t next = 0;
  for (const ClassRange& range : class_ranges()) {
    ASSERT_EQ(range.first, next);
    ASSERT_EQ(character_classes(range.first), range.classes);
    ASSERT_EQ(character_classes(range.last), range.classes);
    next = range.last + 1;
  }
  EXPECT_EQ(next, 0x110000U);
  EXPECT_EQ(general_category(character_classes(0xFFFFFFFF)), GeneralCategory::Cn);
}

TEST(Lowercase, FollowsRunsOfEachStride) {
  EXPECT_EQ(lowercase(U'A'), U'a');
  EXPECT_EQ(lowercase(U'z'), U'z');
  EXPECT_EQ(lowercase(U'É'), U'é');
  EXPECT_EQ(lowercase(U'×'), U'×');
  EXPECT_EQ(lowercase(U'Ā'), U'ā');  // U+0100, every second one from here on
  EXPECT_EQ(lowercase(U'ā'), U'ā');
  EXPECT_EQ(lowercase(U'Ω'), U'ω');
  EXPECT_EQ(lowercase(0x2126), U'ω');  // the sign for ohm
  EXPECT_EQ(lowercase(kCapitalIWithDot), U'i');
  EXPECT_EQ(lowercase(0x10400), 0x10428U);
}

TEST(Utf8, WalksBothWaysAndNeverLeavesTheText) {
  const std::string text = "aé中😀";
  std::u32string forward;
  for_each_utf8_char(text, [&](char32_t c, std::size_t, std::size_t) { forward.push_back(c); });
  EXPECT_EQ(forward, U"aé中😀");
  EXPECT_EQ(utf8_char_before(text, text.size()).code_point, U'😀');
  EXPECT_EQ(utf8_char_before(text, 3).size, 2U);

  std::string again;
  for (const char32_t c : forward) {
    append_utf8(c, again);
  }
  EXPECT_EQ(again, text);

  EXPECT_EQ(utf8_char_at("\xF0\x9F", 0).size, 2U);  // cut off in the middle
}

TEST(Utf8, CountsAsciiFromTheFront) {
  EXPECT_EQ(ascii_prefix_size(""), 0U);
  EXPECT_EQ(ascii_prefix_size("abcdefghijk"), 11U);
  EXPECT_EQ(ascii_prefix_size("abcdefghié"), 9U);
  EXPECT_EQ(ascii_prefix_size("é"), 0U);
}

}  // namespace
}  // namespace muster

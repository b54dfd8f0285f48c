#include "chat/text_work.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace muster {
namespace {

using Parts = std::vector<std::string>;
using Places = std::vector<std::size_t>;

// Each result is what CPython 3.11 gives.

TEST(TextWork, WhiteSpaceIsPythons) {
  EXPECT_EQ(leading_space_size(" \t\n\u00a0\u3000a"), 8U);
  EXPECT_EQ(trailing_space_size("a\u2003 "), 4U);
  EXPECT_EQ(trailing_space_size("a\u200b"), 0U);  // a zero-width space is none
  EXPECT_EQ(stripped_text("xyaxy", StripEnds::Both, "yx"), "a");
  EXPECT_EQ(stripped_text("éaé", StripEnds::Left, "é"), "aé");
}

TEST(TextWork, PlacesOfATextAreThoseOfPythonsFind) {
  EXPECT_EQ(find_text("abcabc", "ca", 0), 2U);
  EXPECT_EQ(find_text("abcabc", "abc", 1), 3U);
  EXPECT_EQ(find_text("abcabc", "abc", 4), std::string_view::npos);
  EXPECT_EQ(find_text("abc", "", 3), 3U);
  EXPECT_EQ(find_text("abc", "", 4), std::string_view::npos);
  EXPECT_EQ(find_text("", "a", 0), std::string_view::npos);
  EXPECT_EQ(find_last_text("abcabc", "abc"), 3U);
  EXPECT_EQ(find_last_text("abcabc", ""), 6U);
  EXPECT_EQ(find_last_text("abcabc", "x"), std::string_view::npos);
  EXPECT_EQ(find_last_text("abc", "abcd"), std::string_view::npos);
}

TEST(TextWork, NoSplitHasMorePartsThanAreForeseen) {
  EXPECT_EQ(most_parts("a,b,,c", ","), 4U);
  EXPECT_EQ(split_text("a,b,,c", ",", std::nullopt).size(), 4U);
  for (const std::string text : {"", " a  b ", "a\u00a0b\u2003c\u0085d"}) {
    EXPECT_GE(most_parts(text, std::nullopt), split_text(text, std::nullopt, std::nullopt).size());
  }
}

TEST(TextWork, CaseIsUnicodes) {
  EXPECT_EQ(upper_text("straße é"), "STRASSE É");
  EXPECT_EQ(lower_text("ÀΣ İ"), "àς i̇");
  EXPECT_EQ(capitalized_text("éCOLE x"), "École x");
  EXPECT_EQ(title_text("hello wORLD (it's) a-b"), "Hello World (It's) A-B");
}

TEST(TextWork, SlicesFollowPython) {
  EXPECT_EQ(slice_places(4, {}, {}, 1), (Places{0, 1, 2, 3}));
  EXPECT_EQ(slice_places(4, 1, -1, 1), (Places{1, 2}));
  EXPECT_EQ(slice_places(4, {}, {}, -1), (Places{3, 2, 1, 0}));
  EXPECT_EQ(slice_places(4, -99, 99, 2), (Places{0, 2}));
  EXPECT_EQ(slice_places(4, 99, {}, -3), (Places{3, 0}));
  EXPECT_EQ(slice_places(4, 3, 1, 1), Places{});
  EXPECT_EQ(slice_places(4, 1, {}, INT64_MAX), Places{1});
}

TEST(TextWork, SlicesOfTextsFollowPython) {
  EXPECT_EQ(sliced_text("aé中😀", {}, {}, 1), "aé中😀");
  EXPECT_EQ(sliced_text("aé中😀", 1, -1, 1), "é中");
  EXPECT_EQ(sliced_text("aé中😀", {}, {}, -1), "😀中éa");
  EXPECT_EQ(sliced_text("aé中😀", -99, 99, 2), "a中");
  EXPECT_EQ(sliced_text("aé中😀", 99, {}, -3), "😀a");
  EXPECT_EQ(sliced_text("aé中😀", 3, 1, 1), "");
  EXPECT_EQ(sliced_text("aé中😀", 1, 3, -1), "");
  EXPECT_EQ(sliced_text("aé中😀", 2, 0, -1), "中é");
  EXPECT_EQ(sliced_text("aé中😀", 1, {}, INT64_MAX), "é");
  EXPECT_EQ(sliced_text("aé中😀", -1, {}, INT64_MIN), "😀");
  EXPECT_EQ(sliced_text("", {}, {}, -1), "");
  EXPECT_EQ(character_at("aé中😀", 1), "é");
  EXPECT_EQ(character_at("aé中😀", -1), "😀");
  EXPECT_EQ(character_at("aé中😀", -4), "a");
  EXPECT_EQ(character_at("aé中😀", 4), std::nullopt);
  EXPECT_EQ(character_at("aé中😀", -5), std::nullopt);
  EXPECT_EQ(character_at("", 0), std::nullopt);
}

TEST(TextWork, SplittingAndReplacingFollowPython) {
  EXPECT_EQ(split_text("  a b\u3000c ", {}, {}), (Parts{"a", "b", "c"}));
  EXPECT_EQ(split_text(" a b c ", {}, 1), (Parts{"a", "b c "}));
  EXPECT_EQ(split_text(" a b ", {}, 0), (Parts{"a b "}));
  EXPECT_EQ(split_text("a--b--", "--", {}), (Parts{"a", "b", ""}));
  EXPECT_EQ(split_text("a-b-c", "-", 1), (Parts{"a", "b-c"}));
  EXPECT_EQ(split_text("", {}, {}), Parts{});
  EXPECT_EQ(split_text("", "-", {}), Parts{""});
  EXPECT_EQ(replaced_text("aaa", "aa", "b", {}), "ba");
  EXPECT_EQ(replaced_text("é", "", "-", {}), "-é-");
  EXPECT_EQ(replaced_text("éa", "", "-", 2), "-é-a");
  EXPECT_EQ(replaced_text("", "", "-", {}), "-");
  EXPECT_EQ(replaced_text("aaa", "a", "b", 2), "bba");
}

TEST(TextWork, LinesEndWherePythonEndsThem) {
  Parts lines;
  const std::string text = "a\r\nb\u2028c\x0c\x0b\x1c\x1d\x1e\u2029\u0085\rd\x1f\n";
  for (std::string_view left = text; !left.empty();) {
    const auto line = first_line(left);
    lines.emplace_back(line.text);
    left.remove_prefix(line.size);
  }
  EXPECT_EQ(lines, (Parts{"a", "b", "c", "", "", "", "", "", "", "", "d\x1f"}));
}

TEST(TextWork, DigitsArePythons) {
  EXPECT_TRUE(is_digits("0129"));
  EXPECT_TRUE(is_digits("\u00b2\u0663"));  // a superscript two, an Arabic three
  EXPECT_FALSE(is_digits("\u00bd"));       // a half
  EXPECT_FALSE(is_digits("1.5"));
  EXPECT_FALSE(is_digits(""));
}

TEST(TextWork, EscapesAreResolved) {
  EXPECT_EQ(*unescaped(R"(a\n\t\\\'\"\x41\u00e9\U0001F600\101\q)"), "a\n\t\\'\"Aé😀A\\q");
  EXPECT_FALSE(unescaped(R"(\x4)"));
  EXPECT_FALSE(unescaped(R"(\ud800)"));
  EXPECT_FALSE(unescaped(R"(\N{BULLET})"));
}

}  // namespace
}  // namespace muster

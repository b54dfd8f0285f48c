#include "base/text.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(NearestName, FindsATypo) {
  const std::vector<std::string> names{"--devices", "--batch-tokens", "--quiet"};
  EXPECT_EQ(nearest_name("--devcies", names), "--devices");  // two swapped letters: distance 1
  EXPECT_EQ(nearest_name("--nothing-like-it", names), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(1 << 20, 'd'), names), std::nullopt);
}

TEST(HumanBytes, ShowsThreeDigits) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(90'868'376), "90.9 MB");
  EXPECT_EQ(human_bytes(1'234'567'890), "1.23 GB");
  EXPECT_EQ(human_bytes(999'999), "1.00 MB");
}

TEST(WithThousands, Groups) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(1234567), "1,234,567");
}

TEST(Split, KeepsEmptyPieces) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
}

TEST(Trim, TakesBlanksOffBothSides) {
  EXPECT_EQ(trim("  a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(LastLine, IsTheLastThatSaysSomething) {
  EXPECT_EQ(last_line("one\ntwo\n\n"), "two");
  EXPECT_EQ(last_line("one"), "one");
  EXPECT_EQ(last_line("\n"), "");
}

TEST(InvalidUtf8, NamesTheFirstBadByte) {
  EXPECT_EQ(invalid_utf8_at("gr\xC3\xBC\xC3\x9F"), std::nullopt);
  EXPECT_EQ(invalid_utf8_at("ab\xFFz"), 2U);
  EXPECT_EQ(invalid_utf8_at("\xC0\xAF"), 0U);          // overlong '/'
  EXPECT_EQ(invalid_utf8_at("a\xED\xA0\x80"), 1U);     // a surrogate
  EXPECT_EQ(invalid_utf8_at("\xF4\x90\x80\x80"), 0U);  // above U+10FFFF
  EXPECT_EQ(invalid_utf8_at("abc\xE2\x82"), 3U);       // cut off
}

TEST(Excerpt, CutsNoCharacter) {
  EXPECT_EQ(excerpt("abc", 3), "abc");
  EXPECT_EQ(excerpt("abcd", 3), "abc…");
  EXPECT_EQ(excerpt("ab\u00e9", 3), "ab…") << "two bytes, of which one has room";
  EXPECT_EQ(excerpt(std::string(1'000'000, 'x')), std::string(60, 'x') + "…");
}

}  // namespace
}  // namespace muster

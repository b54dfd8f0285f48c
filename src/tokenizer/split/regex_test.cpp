#include "tokenizer/split/regex.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tokenizer/split/regex_translation.h"

namespace muster {
namespace {

using Matches = std::vector<std::string>;

Matches matches(std::string_view pattern, std::string_view text) {
  const auto regex = Regex::compile(pattern);
  EXPECT_TRUE(regex) << pattern;
  Matches found;
  if (regex) {
    regex->for_each_match(text, [&](std::size_t begin, std::size_t end) {
      found.emplace_back(text.substr(begin, end - begin));
    });
  }
  return found;
}

TEST(Regex, ReadsClassesQuantifiersAndGroups) {
  EXPECT_EQ(matches(R"(\p{Lu}\p{Ll}+)", "Ab ÉÀé aB"), (Matches{"Ab", "Àé"}));
  EXPECT_EQ(matches(R"([^\s\p{L}]+)", "ab 12, c"), (Matches{"12,"}));
  EXPECT_EQ(matches(R"(\d{2,3})", "1 12 1234"), (Matches{"12", "123"}));
  EXPECT_EQ(matches(R"(a{,2}b)", "aaab"), (Matches{"aab"}));
  EXPECT_EQ(matches(R"((a|b)c(?!d))", "acd bc"), (Matches{"bc"}));
  EXPECT_EQ(matches(R"((?<=x)y)", "xy y"), (Matches{"y"}));
  EXPECT_EQ(matches(R"([\]\-a])", "a]-b"), (Matches{"a", "]", "-"}));
  EXPECT_EQ(matches(R"(\P{L}\S?)", "a1b"), (Matches{"1b"}));
  EXPECT_EQ(matches(R"(\x{4e2d}|\u00e9)", "é中"), (Matches{"é", "中"}));
  EXPECT_EQ(matches(R"([一-龥ぁ-ん]+)", "abc漢字かな"), (Matches{"漢字かな"}));
}

TEST(Regex, SpaceIsWhatOnigurumaCallsSpace) {
  EXPECT_EQ(matches(R"(\s)", "\xE1\xA0\x8E\xC2\x85\v"), (Matches{"\xC2\x85", "\v"}));
  EXPECT_EQ(matches(R"(\v)", "\v\n"), (Matches{"\v"}));
}

TEST(Regex, LinesEndAtLineFeedsOnly) {
  EXPECT_EQ(matches("^.", "a\nb\rc"), (Matches{"a", "b"}));
  EXPECT_EQ(matches("(.)$", "a\r\nb"), (Matches{"\r", "b"}));
}

TEST(Regex, CaselessTextFoldsAsUnicodeDoes) {
  EXPECT_EQ(matches("(?i:'s|'k)", "'S 'ſ '\xE2\x84\xAA"), (Matches{"'S", "'ſ", "'\xE2\x84\xAA"}));
}

TEST(Regex, EmptyMatchesAreOneStepApart) {
  EXPECT_EQ(matches("", "é"), (Matches{"", ""}));
  EXPECT_EQ(matches("a*", "baa"), (Matches{"", "aa"}));
}

TEST(Regex, LiteralTextHasNoMeaningOfItsOwn) {
  const auto regex = Regex::literal(R"(a.\[é)");
  ASSERT_TRUE(regex);
  std::size_t count = 0;
  regex->for_each_match(R"(ab\[é a.\[é)", [&](std::size_t begin, std::size_t) {
    ++count;
    EXPECT_EQ(begin, 7U);
  });
  EXPECT_EQ(count, 1U);
}

TEST(Regex, RefusesByNameWhatItCannotPromise) {
  const std::vector<std::string> patterns = {
      R"(\bword)", R"(\h+)",     R"(\Gx)",    R"((a)\1)",   "(?<name>a)",    "[[:alpha:]]",
      "[a[b]]",    "[a&&b]",     "a{2}+",     "a**",        "a{x}",          "(?i:ss)",
      "(?i:é)",    "(?i:[a-z])", "x(?i)y",    R"(\p{Han})", R"(\X)",         "(a",
      "a)",        "[a",         "[]",        "[z-a]",      R"(\x{110000})", R"(a\)",
      "*a",        R"([\s-z])",  "(?#note)a", R"(\xE9)",    "(?m:a)"};
  for (const std::string& pattern : patterns) {
    SCOPED_TRACE(pattern);
    const auto regex = Regex::compile(pattern);
    ASSERT_FALSE(regex);
    EXPECT_EQ(regex.error().kind, ErrorKind::Unsupported);
    EXPECT_NE(regex.error().message.find(pattern), std::string::npos);
  }
}

// The first alternative takes the whole run and gives it back letter by letter, as marks may be
// either; the second takes it.
TEST(Regex, ALongRunThatIsGivenBackHidesNothingBehindIt) {
  const auto* split =
      R"([\p{Lu}\p{M}]*[\p{Ll}\p{M}]+|[\p{Lu}\p{M}]+| ?\p{L}+|\s*[\r\n]+|\s+(?!\S)|\s+)";
  const std::string letters(150'000, 'A');
  EXPECT_EQ(matches(split, letters + " hello world"), (Matches{letters, " hello", " world"}));
  const std::string blanks(150'000, ' ');
  EXPECT_EQ(matches(split, "a" + blanks + " b c"), (Matches{"a", blanks, " b", " c"}));
}

// Each pass of the group takes room on a stack, which one of 5,000 letters does not have.
TEST(Regex, AGroupOfManyPassesIsFoundAsOneOfFew) {
  const auto* group = "(?:[a-z]|x[0-9])+ ";
  for (const std::size_t size : {5U, 5'000U}) {
    const std::string word = std::string(size, 'a') + " ";
    EXPECT_EQ(matches(group, word + "b "), (Matches{word, "b "})) << size;
  }
}

TEST(Regex, GivesUpOnAPatternThatExplodes) {
  EXPECT_EQ(matches("(a+)+$", std::string(40, 'a') + "b"), Matches{});
  EXPECT_FALSE(Regex::compile(std::string(20'000, 'a')));
  EXPECT_FALSE(Regex::compile(std::string(5'000, '(') + std::string(5'000, ')')));
}

TEST(TranslatePattern, WritesClassesAsRanges) {
  const auto translated = translate_pattern(R"(\d)");
  ASSERT_TRUE(translated);
  EXPECT_EQ(translated->substr(0, 30), R"([0-9\x{000660}-\x{000669}\x{00)");
}

}  // namespace
}  // namespace muster

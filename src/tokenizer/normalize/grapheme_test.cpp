#include "tokenizer/normalize/grapheme.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace muster {
namespace {

using Clusters = std::vector<std::string>;

Clusters clusters_of(std::string_view text) {
  Clusters clusters;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = grapheme_end(text, begin);
    clusters.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return clusters;
}

// The rules and most examples are those of Unicode Standard Annex 29 and GraphemeBreakTest.txt.

TEST(Grapheme, KeepsLineEndsApartFromAllElse) {
  EXPECT_EQ(clusters_of("a\r\n\r\n\n\r"), (Clusters{"a", "\r\n", "\r\n", "\n", "\r"}));
  EXPECT_EQ(clusters_of("\n\xCC\x81"), (Clusters{"\n", "\xCC\x81"}));
}

TEST(Grapheme, TakesMarksToTheirBase) {
  EXPECT_EQ(clusters_of("e\u0301\u0323f"), (Clusters{"e\u0301\u0323", "f"}));
  EXPECT_EQ(clusters_of("\u0915\u0903b"), (Clusters{"\u0915\u0903", "b"}));  // a spacing mark
  EXPECT_EQ(clusters_of("a\u200Db"), (Clusters{"a\u200D", "b"}));
  EXPECT_EQ(clusters_of("\u0600a \u0600\n"), (Clusters{"\u0600a", " ", "\u0600", "\n"}));
}

TEST(Grapheme, JoinsHangulSyllables) {
  EXPECT_EQ(clusters_of("\u1100\u1100\u1161\u11A8\u1100"),
            (Clusters{"\u1100\u1100\u1161\u11A8", "\u1100"}));
  EXPECT_EQ(clusters_of("\uAC00\u11A8\uAC01\u1161"),
            (Clusters{"\uAC00\u11A8", "\uAC01", "\u1161"}));
}

TEST(Grapheme, JoinsConsonantsByALinker) {
  EXPECT_EQ(clusters_of("\u0915\u094D\u0924"), Clusters{"\u0915\u094D\u0924"});
  EXPECT_EQ(clusters_of("\u0915\u094D\u094D\u200D\u0924"),
            Clusters{"\u0915\u094D\u094D\u200D\u0924"});
  EXPECT_EQ(clusters_of("\u0915\u0924"), (Clusters{"\u0915", "\u0924"}));
  EXPECT_EQ(clusters_of("\u0915\u200D\u0924"), (Clusters{"\u0915\u200D", "\u0924"}));
  EXPECT_EQ(clusters_of("\u0915\u094D\u200C\u0924"), (Clusters{"\u0915\u094D\u200C", "\u0924"}));
  EXPECT_EQ(clusters_of("a\u094D\u0924"), (Clusters{"a\u094D", "\u0924"}));
}

TEST(Grapheme, JoinsPictographicsByAJoiner) {
  EXPECT_EQ(clusters_of("\U0001F6D1\u200D\U0001F6D1"), Clusters{"\U0001F6D1\u200D\U0001F6D1"});
  EXPECT_EQ(clusters_of("\u00A9\u0301\u200D\u00A9"), Clusters{"\u00A9\u0301\u200D\u00A9"});
  EXPECT_EQ(clusters_of("a\u200D\u00A9"), (Clusters{"a\u200D", "\u00A9"}));
  EXPECT_EQ(clusters_of("\u00A9\u200D\u200D\u00A9"), (Clusters{"\u00A9\u200D\u200D", "\u00A9"}));
}

}  // namespace
}  // namespace muster

#include "report/html.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(HtmlEscaped, WritesWhatHasAMeaningAsReferences) {
  EXPECT_EQ(html_escaped("<script>alert('&\")</script>"),
            "&lt;script&gt;alert(&#39;&amp;&quot;)&lt;/script&gt;");
  EXPECT_EQ(html_escaped("ä\tb\nc"), "ä\tb\nc");
}

TEST(HtmlEscaped, ReplacesWhatIsNoText) {
  EXPECT_EQ(html_escaped(std::string_view("a\0b\x1b\x7f", 5)),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(html_escaped("a\xff<"), "a\xEF\xBF\xBD&lt;");
  EXPECT_EQ(html_escaped("\xc3"), "\xEF\xBF\xBD");
}

// An "é" is two bytes.
TEST(CutText, CutsBetweenCharacters) {
  EXPECT_EQ(cut_text("aé", 3), "aé");
  EXPECT_EQ(cut_text("aéb", 3), "aé…");
  EXPECT_EQ(cut_text("aéb", 2), "a…");
}

TEST(HtmlName, IsShortAndIsolated) {
  EXPECT_EQ(html_name("a<b"), "<bdi>a&lt;b</bdi>");
  EXPECT_EQ(html_name(std::string(201, 'x')), "<bdi>" + std::string(200, 'x') + "…</bdi>");
}

TEST(HtmlTable, NamesItsRowsAndColumns) {
  const HtmlTable table{.caption = "a & b", .columns = {"", "p50"}, .rows = {{"latency", "20.0"}}};
  const auto html = table.html();
  EXPECT_NE(html.find("<caption>a &amp; b</caption>"), std::string::npos) << html;
  EXPECT_NE(html.find("<th scope=\"col\">p50</th>"), std::string::npos);
  EXPECT_NE(html.find("<tr><th scope=\"row\">latency</th><td>20.0</td></tr>"), std::string::npos);
  EXPECT_EQ(HtmlTable{.caption = "x"}.html(), "");
}

}  // namespace
}  // namespace muster

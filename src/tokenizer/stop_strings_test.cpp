#include "tokenizer/stop_strings.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace muster {
namespace {

StopStrings make(std::vector<std::string> stops) {
  auto made = StopStrings::make(std::move(stops));
  EXPECT_TRUE(made);
  return *std::move(made);
}

TEST(StopStrings, TextBeforeAStopIsLetThroughAndTheRestIsNot) {
  auto stops = make({"###", "END"});
  auto step = stops.push("one ## two");
  EXPECT_EQ(step.text, "one ## two");
  EXPECT_FALSE(step.stop);
  step = stops.push(" E");
  EXPECT_EQ(step.text, " ");  // "E" may become "END"
  step = stops.push("N");
  EXPECT_EQ(step.text, "");
  step = stops.push("Dx");
  EXPECT_EQ(step.text, "");
  EXPECT_EQ(step.stop, 1U);
  EXPECT_EQ(stops.push("more").text, "");
  EXPECT_EQ(stops.finish(), "");
}

TEST(StopStrings, APrefixThatCameToNothingIsGivenBack) {
  auto stops = make({"aab"});
  EXPECT_EQ(stops.push("aa").text, "");
  // "aaa": its first byte can begin no match any more, the last two still can.
  EXPECT_EQ(stops.push("a").text, "a");
  EXPECT_EQ(stops.push("c").text, "aac");
  EXPECT_EQ(stops.push("a").text, "");
  EXPECT_EQ(stops.finish(), "a");
}

TEST(StopStrings, OfTwoThatEndTogetherTheLongerCounts) {
  auto stops = make({"c", "abc"});
  EXPECT_EQ(stops.push("xab").text, "x");
  const auto step = stops.push("c");
  EXPECT_EQ(step.text, "");
  EXPECT_EQ(step.stop, 1U);
}

TEST(StopStrings, WithoutAnyAllTextPassesAtOnce) {
  auto stops = make({});
  EXPECT_EQ(stops.push("text").text, "text");
  EXPECT_EQ(stops.finish(), "");
}

TEST(StopStrings, AnEmptyOneIsRefused) {
  const auto made = StopStrings::make({"a", ""});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::InvalidArgument);
}

TEST(StopStrings, RandomPartsGiveWhatASearchOfTheWholeGives) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto word = [&](std::size_t size_max) {
    std::string text(1 + random() % size_max, 'a');
    for (auto& c : text) c = static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    const std::vector<std::string> texts{word(5), word(4)};
    const auto whole = word(30);
    // By definition: the match that ends first, of equal ends the longest.
    std::string expected = whole;
    for (std::size_t end = 1; end <= whole.size() && expected == whole; ++end) {
      std::size_t longest = 0;
      for (const auto& text : texts) {
        if (whole.substr(0, end).ends_with(text)) longest = std::max(longest, text.size());
      }
      if (longest > 0) {
        expected = whole.substr(0, end - longest);
        break;
      }
    }
    auto stops = make(texts);
    std::string out;
    bool is_stopped = false;
    for (std::size_t at = 0; at < whole.size();) {
      const auto size = 1 + random() % 4;
      const auto step = stops.push(std::string_view(whole).substr(at, size));
      at += size;
      out += step.text;
      is_stopped |= step.stop.has_value();
      ASSERT_TRUE(expected.starts_with(out)) << whole << " stops " << texts[0] << " " << texts[1];
    }
    out += stops.finish();
    ASSERT_EQ(out, expected) << whole << " stops " << texts[0] << " " << texts[1];
    ASSERT_EQ(is_stopped, expected.size() != whole.size());
  }
}

}  // namespace
}  // namespace muster

#include "chat/value.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "chat/float_text.h"

namespace muster {
namespace {

TEST(ChatValue, JsonKeepsItsOrderAndItsLastOfEqualKeys) {
  const auto value = ChatValue::parse(R"({"b": 1, "a": [true, null, 1.5, "é"], "b": 2})");
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_EQ(text_of(*value), "{'b': 2, 'a': [True, None, 1.5, 'é']}");
}

TEST(ChatValue, BrokenAndDeepJsonIsRefused) {
  EXPECT_FALSE(ChatValue::parse("{"));
  EXPECT_FALSE(ChatValue::parse("18446744073709551615"));
  const auto deep = ChatValue::parse(std::string(100, '[') + std::string(100, ']'));
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().message, "JSON nested deeper than 64");
}

TEST(ChatValue, AWalkMeetsWhatIsSharedAsOftenAsItStandsThere) {
  EXPECT_EQ(ChatValue("abc").measure().weight, 4U);
  EXPECT_EQ(ChatValue("abc").measure().depth, 0U);
  const ChatValue list(ChatValue::List{"abc", "abc", std::int64_t{1}});
  EXPECT_EQ(list.measure().weight, 1U + 4 + 4 + 1);
  EXPECT_EQ(list.measure().depth, 1U);
  const ChatValue map(ChatValue::Map{{"key", list}, {"k", list}});
  EXPECT_EQ(map.measure().weight, 1U + 3 + 10 + 1 + 10);
  EXPECT_EQ(map.measure().depth, 2U);
  EXPECT_FALSE(map.measure().holds_namespace);
  ChatValue value = list;
  for (int i = 0; i < 70; ++i) value = ChatValue(ChatValue::List{value, value});
  EXPECT_EQ(value.measure().weight, UINT64_MAX);
  const ChatValue fields(std::make_shared<ChatValue::Namespace>());
  EXPECT_TRUE(
      ChatValue(ChatValue::List{ChatValue(ChatValue::List{fields})}).measure().holds_namespace);
}

// As CPython 3.11 prints them.
TEST(ChatValue, FloatsAreWrittenAsPythonDoes) {
  EXPECT_EQ(float_text(0.1), "0.1");
  EXPECT_EQ(float_text(100.0), "100.0");
  EXPECT_EQ(float_text(-0.0), "-0.0");
  EXPECT_EQ(float_text(1e15), "1000000000000000.0");
  EXPECT_EQ(float_text(1e16), "1e+16");
  EXPECT_EQ(float_text(1.5e-7), "1.5e-07");
  EXPECT_EQ(float_text(0.0001), "0.0001");
  EXPECT_EQ(float_text(123456.789), "123456.789");
  EXPECT_EQ(float_text(1e300), "1e+300");
  EXPECT_EQ(float_text(std::numeric_limits<double>::infinity()), "inf");
}

TEST(ChatValue, TextsAreQuotedAsPythonDoes) {
  EXPECT_EQ(quoted_text_of(ChatValue("it's")), "\"it's\"");
  EXPECT_EQ(quoted_text_of(ChatValue("it's \"so\"")), "'it\\'s \"so\"'");
  EXPECT_EQ(quoted_text_of(ChatValue("a\\b\n\t\x01")), "'a\\\\b\\n\\t\\x01'");
  EXPECT_EQ(quoted_text_of(ChatValue("é\u00a0\u200b😀")), "'é\\xa0\\u200b😀'");
}

}  // namespace
}  // namespace muster

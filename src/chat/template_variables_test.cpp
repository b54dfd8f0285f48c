#include "chat/template_variables.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

TEST(TemplateVariablesTest, AnObjectIsReadInItsOrder) {
  const auto variables = parse_template_variables(R"({"enable_thinking":false,"a":[1,"x"]})");
  ASSERT_TRUE(variables) << variables.error().message;
  ASSERT_EQ(variables->size(), 2U);
  EXPECT_EQ((*variables)[0].first, "enable_thinking");
  EXPECT_TRUE(are_equal((*variables)[0].second, ChatValue(false)));
  EXPECT_EQ((*variables)[1].first, "a");
  EXPECT_EQ(template_variables_json(*variables), R"({"enable_thinking": false, "a": [1, "x"]})");
  EXPECT_TRUE(parse_template_variables("{}")->empty());
}

TEST(TemplateVariablesTest, WhatIsNoObjectOrSetElsewhereIsRefused) {
  const auto fault = [](std::string_view json) {
    const auto variables = parse_template_variables(json);
    return variables ? std::string("none") : variables.error().message;
  };
  EXPECT_EQ(fault("[]"),
            "expected an object, such as {\"enable_thinking\": false}, but got a value of the kind "
            "list");
  EXPECT_EQ(fault(R"({"messages":[]})"), "'messages' cannot be given here: the rendering sets it");
  EXPECT_EQ(fault(R"({"a":1,"eos_token":""})"),
            "'eos_token' cannot be given here: the rendering sets it");
  EXPECT_EQ(fault("{").substr(0, 14), "not valid JSON");
}

// A request may be much longer than what is read of it here at once.
TEST(TemplateVariablesTest, TooManyNamesAndTooLongAnObjectAreRefused) {
  const auto names = [](int count) {
    std::string json;
    for (int i = 0; i < count; ++i) json += (i == 0 ? "{\"a" : ",\"a") + std::to_string(i) + "\":0";
    return json + "}";
  };
  EXPECT_TRUE(parse_template_variables(names(64)));
  const auto many = parse_template_variables(names(65));
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().message, "more than 64 names");
  const auto text = [](std::size_t size) {
    return "{\"a\":\"" + std::string(size - 8, 'x') + "\"}";
  };
  EXPECT_TRUE(parse_template_variables(text(65'536)));
  const auto is_long = parse_template_variables(text(65'537));
  ASSERT_FALSE(is_long);
  EXPECT_EQ(is_long.error().message, "longer than 65536 bytes");
}

}  // namespace
}  // namespace muster

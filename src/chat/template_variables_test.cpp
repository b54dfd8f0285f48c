#include "chat/template_variables.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(fault(R"({"messages":[]})"), "'messages' is set from the rest of the request");
  EXPECT_EQ(fault(R"({"a":1,"eos_token":""})"), "'eos_token' is set from the rest of the request");
  EXPECT_EQ(fault("{").substr(0, 14), "not valid JSON");
}

}  // namespace
}  // namespace muster

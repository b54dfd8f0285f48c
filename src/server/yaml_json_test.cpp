#include "server/yaml_json.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(YamlAsJson, WhatIsPlainIsReadAndWhatIsQuotedIsText) {
  EXPECT_EQ(yaml_as_json("{a: 1, b: '1', c: true, d: \"true\", e: null, f: 'null', g: 1.5, "
                         "h: 3.1.0, i: -7, j: text, k: [1, x]}"),
            R"({"a":1,"b":"1","c":true,"d":"true","e":null,"f":"null","g":1.5,)"
            R"("h":"3.1.0","i":-7,"j":"text","k":[1,"x"]})");
}

TEST(YamlAsJson, KeysAreTextAndKeepTheirOrder) {
  EXPECT_EQ(yaml_as_json("'404': {}\n'200': []\n"), R"({"404":{},"200":[]})");
}

TEST(YamlAsJson, ABlockIsText) {
  EXPECT_EQ(yaml_as_json("a: |\n  12\n  b\n"), R"({"a":"12\nb\n"})");
}

TEST(YamlAsJson, WhatIsNoYamlIsNothing) { EXPECT_EQ(yaml_as_json("{"), ""); }

}  // namespace
}  // namespace muster

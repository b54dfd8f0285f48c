#include "serving/model_name.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

TEST(ModelName, HubIdsAndPlainNamesAreNames) {
  for (const std::string name : {"tiny", "BAAI/bge-m3", "m.v2", "a b", "mod\u00e8le", "loader"}) {
    EXPECT_TRUE(check_model_name(name)) << name;
  }
  EXPECT_TRUE(check_model_name(std::string(256, 'a')));
}

TEST(ModelName, WhatBreaksAPathALineOrARouteIsNone) {
  using namespace std::string_literals;
  for (const std::string& name :
       {""s, "a\r\nb"s, "a\0b"s, "\x7f"s, "\xff"s, "."s, ".."s, "..."s, "a/../b"s, "/a"s, "a/"s,
        "a//b"s, "load"s, "unload"s, std::string(257, 'a')}) {
    EXPECT_FALSE(check_model_name(name)) << testing::PrintToString(name);
  }
}

TEST(ModelName, TheErrorDoesNotRepeatIt) {
  EXPECT_EQ(check_model_name("a\nb").error().message,
            "a model's name has no control bytes; NAME=MODEL, or the field name, gives another");
}

}  // namespace
}  // namespace muster

// The values of an identity: what earlier versions wrote stays, and no two lists read the same.

#include "jobs/input_identity.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster {
namespace {

using Names = std::vector<std::string>;

// So that a journal of them is resumed.
TEST(InputIdentity, NamesAreJoinedAsEarlierVersionsDid) {
  EXPECT_EQ(names_value({"a.txt"}), "a.txt");
  EXPECT_EQ(names_value({"a.txt", "folder/b c.txt", "d,e"}), "a.txt, folder/b c.txt, d,e");
  EXPECT_EQ(name_value("id"), "id");
  EXPECT_EQ(name_value(std::nullopt), "none");
  TextReaderOptions input;
  input.inputs = {"a.txt", "b.txt"};
  EXPECT_EQ(input_identity(input)[0],
            std::pair(std::string("the input"), std::string("a.txt, b.txt")));
}

TEST(InputIdentity, NoTwoListsReadTheSame) {
  EXPECT_EQ(names_value({"a, b"}), R"(["a, b"])");
  std::set<std::string> values;
  const std::vector<Names> lists{{"a", "b"},        {"a, b"},     {"a,", "b"},      {"a", " b"},
                                 {"a, ", "b"},      {"a", ", b"}, {"[\"a", "b\"]"}, {"[\"a, b\"]"},
                                 {"[\"a\",\"b\"]"}, {"a,b"},      {"a", "", "b"},   {"a", "b", ""}};
  for (const auto& list : lists) {
    EXPECT_TRUE(values.insert(names_value(list)).second) << names_value(list);
  }
  EXPECT_EQ(name_value("none"), R"("none")") << "the field of that name";
  EXPECT_NE(name_value("\"none\""), name_value("none"));
}

TEST(InputIdentity, TextsAreJson) {
  EXPECT_EQ(texts_value({"a", "b\n"}), R"(["a","b\n"])");
  EXPECT_EQ(text_value("none"), R"("none")");
  EXPECT_EQ(text_value("\xff"), "\"\xEF\xBF\xBD\"") << "U+FFFD";
}

}  // namespace
}  // namespace muster

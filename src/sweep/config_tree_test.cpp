#include "sweep/config_tree.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Kind = ConfigNode::Kind;

std::string refusal(const std::string& text) {
  const auto tree = parse_config_tree(text, "b.yaml");
  EXPECT_FALSE(tree) << text;
  return tree ? "" : tree.error().message;
}

TEST(ConfigTree, KeepsTheLinesOfKeys) {
  const auto tree = parse_config_tree("a: 1\nb:\n  - x\n  - [y, 'z']\nc: {d:\n  2}\n", "b.yaml");
  ASSERT_TRUE(tree) << tree.error().message;
  ASSERT_EQ(tree->kind, Kind::Mapping);
  EXPECT_EQ(tree->keys, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(tree->values[0].text, "1");
  EXPECT_EQ(tree->values[0].line, 1);
  const auto& list = tree->values[1];
  EXPECT_EQ(list.line, 2) << "where its key stands";
  ASSERT_EQ(list.values.size(), 2U);
  EXPECT_EQ(list.values[1].line, 4);
  EXPECT_EQ(list.values[1].values[1].text, "z");
  EXPECT_EQ(tree->values[2].values[0].line, 5) << "and not where the value does";
}

TEST(ConfigTree, TellsWhatIsEmptyFromWhatIsNot) {
  EXPECT_EQ(parse_config_tree("", "b.yaml")->kind, Kind::Nothing);
  EXPECT_EQ(parse_config_tree("# nothing\n", "b.yaml")->kind, Kind::Nothing);
  EXPECT_EQ(parse_config_tree("a:\n", "b.yaml")->values[0].kind, Kind::Nothing);
  EXPECT_EQ(parse_config_tree("a: null\n", "b.yaml")->values[0].kind, Kind::Nothing);
  EXPECT_EQ(parse_config_tree("a: \"\"\n", "b.yaml")->values[0].kind, Kind::Plain);
  EXPECT_EQ(parse_config_tree("[0, 1]", "b.yaml")->kind, Kind::List);
}

TEST(ConfigTree, SaysLineAndReason) {
  EXPECT_EQ(refusal("a: 1\nb: @x\n"), "b.yaml:2: no YAML: unknown token");
  EXPECT_EQ(refusal("a: 1\nb: 2\na: 3\n"), "b.yaml:3: a stands twice");
  EXPECT_EQ(refusal("a: &x 1\nb: *x\n"), "b.yaml:2: references (*name) are not allowed here");
  EXPECT_EQ(refusal("a: 1\n---\nb: 2\n"),
            "b.yaml:2: more than one document (a line \"---\" begins another)");
  EXPECT_EQ(refusal("? [a]\n: 1\n"), "b.yaml:1: a key must be a plain name");
  EXPECT_EQ(refusal("[[[[[[[[[1]]]]]]]]]"), "b.yaml:1: too many levels");
}

// To the parser of YAML that is another document, though no line begins one.
TEST(ConfigTree, ShowsWhatStandsBehindAValue) {
  EXPECT_EQ(refusal("[float16, int8] --restart"),
            "b.yaml:1: something stands behind the value: --restart");
  EXPECT_EQ(refusal("{a: 1} ---"), "b.yaml:1: something stands behind the value: ---");
  EXPECT_EQ(refusal("{a:\n  1}\nb: 2\n"), "b.yaml:3: something stands behind the value: b: 2");
  EXPECT_EQ(refusal("\"x\" y"), "b.yaml:1: something stands behind the value: y");
}

// Its texts go into tables and results, which are UTF-8.
TEST(ConfigTree, RefusesWhatIsNoUtf8) {
  EXPECT_EQ(refusal("a: 1\nname: \xff\xfe\n"), "b.yaml:2: not valid UTF-8: save it as UTF-8");
  EXPECT_EQ(parse_config_tree("name: größe\n", "b.yaml")->values[0].text, "größe");
}

TEST(ConfigTree, SurvivesDeepNestingAndManyValues) {
  EXPECT_FALSE(parse_config_tree(std::string(100'000, '['), "b.yaml"));
  EXPECT_FALSE(parse_config_tree(std::string(100'000, '{'), "b.yaml"));
  std::string many = "[0";
  for (int i = 0; i < 100'001; ++i) many += ",0";
  EXPECT_EQ(refusal(many + "]"), "b.yaml:1: too many values");
}

// Each is compared with all before it: 100,000 would be five billion comparisons.
TEST(ConfigTree, BoundsTheKeysOfAMapping) {
  std::string keys;
  for (int i = 0; i < 2'000; ++i) keys += "k" + std::to_string(i) + ":\n";
  EXPECT_TRUE(parse_config_tree(keys, "b.yaml"));
  EXPECT_EQ(refusal(keys + "one_more:\n"), "b.yaml:2001: too many keys");
  EXPECT_EQ(refusal(keys + "k7:\n"), "b.yaml:2001: k7 stands twice");
}

}  // namespace
}  // namespace muster

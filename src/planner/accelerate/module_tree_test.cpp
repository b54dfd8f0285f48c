#include "planner/accelerate/module_tree.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

ModuleEntry linear(std::string name, std::int64_t rows, std::int64_t columns) {
  return {std::move(name), "Linear", {{"weight", {rows, columns}, "float32"}}, {}, {}};
}

/// embed.weight [10, 4], block.up.weight [8, 4], head.weight tied to embed.weight, a bool mask.
ModuleEntry model() {
  ModuleEntry block{"block", "Block", {}, {{"mask", {16}, "bool"}}, {linear("up", 8, 4)}};
  return {"", "Model", {}, {}, {linear("embed", 10, 4), block, linear("head", 10, 4)}};
}

std::int64_t bits_of(const ModuleTree& tree, const LoadDtypes& dtypes, std::string_view name) {
  const auto bits = module_bits(tree, dtypes);
  EXPECT_TRUE(bits);
  const auto node = tree.find(name);
  EXPECT_TRUE(node) << name;
  return bits && node ? (*bits)[*node] : -1;
}

TEST(ModuleTree, ListsParametersThenModulesThenBuffers) {
  auto root = model();
  root.parameters.push_back({"scale", {1}, "float32"});
  const auto tree = flatten_modules(root, {});
  ASSERT_TRUE(tree);
  std::vector<std::string> names;
  for (const auto& node : tree->nodes) names.push_back(node.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"", "scale", "embed", "embed.weight", "block", "block.up",
                                      "block.up.weight", "block.mask", "head", "head.weight"}));
  EXPECT_TRUE(tree->has_child_module(*tree->find("block")));
  EXPECT_FALSE(tree->has_child_module(*tree->find("head")));
  EXPECT_FALSE(tree->find("block.down"));
  EXPECT_FALSE(tree->find("bloc"));
}

TEST(ModuleTree, CountsATiedParameterOnceAtItsFirstName) {
  const auto tree = flatten_modules(model(), {{"head.weight", "embed.weight"}});
  ASSERT_TRUE(tree);
  EXPECT_EQ(bits_of(*tree, {}, "embed"), 10 * 4 * 32);
  EXPECT_EQ(bits_of(*tree, {}, "head"), 0);
  EXPECT_EQ(bits_of(*tree, {}, ""), 10 * 4 * 32 + 8 * 4 * 32 + 16);
}

TEST(ModuleTree, JoinsTieGroupsThatShareAName) {
  auto root = model();
  root.children.push_back(linear("second", 10, 4));
  const auto tree =
      flatten_modules(root, {{"embed.weight", "head.weight"}, {"second.weight", "head.weight"}});
  ASSERT_TRUE(tree);
  ASSERT_EQ(tree->ties.size(), 1U);
  EXPECT_EQ(tree->ties[0].size(), 3U);
}

TEST(ModuleTree, ConvertsFloatsToTheLoadDtypeWhereSmaller) {
  auto root = model();
  root.buffers.push_back({"ids", {8}, "int64"});
  root.buffers.push_back({"half", {8}, "float16"});
  const auto tree = flatten_modules(root, {});
  ASSERT_TRUE(tree);
  const LoadDtypes as_fp16{"float16", {}};
  EXPECT_EQ(bits_of(*tree, as_fp16, "embed"), 10 * 4 * 16);
  EXPECT_EQ(bits_of(*tree, as_fp16, "ids"), 8 * 64);           // integers keep theirs
  EXPECT_EQ(bits_of(*tree, as_fp16, "block.mask"), 16);        // so do booleans
  EXPECT_EQ(bits_of(*tree, {"float32", {}}, "half"), 8 * 16);  // the smaller of both
}

TEST(ModuleTree, ASpecialDtypeWinsAndCountsBelowAByte) {
  const auto tree = flatten_modules(model(), {});
  ASSERT_TRUE(tree);
  const LoadDtypes dtypes{"float16", {{"embed.weight", "int4"}, {"head.weight", "torch.int2"}}};
  EXPECT_EQ(bits_of(*tree, dtypes, "embed"), 10 * 4 * 4);
  EXPECT_EQ(bits_of(*tree, dtypes, "head"), 10 * 4 * 2);
  EXPECT_FALSE(module_bits(*tree, {std::nullopt, {{"embed", "int4"}}}));  // no tensor
  EXPECT_FALSE(module_bits(*tree, {"float17", {}}));
}

TEST(ModuleTree, RefusesNamesThatNoModuleHas) {
  ModuleEntry dotted{"", "M", {{"a.b", {1}, "float32"}}, {}, {}};
  EXPECT_FALSE(flatten_modules(dotted, {}));
  ModuleEntry twice{"", "M", {{"a", {1}, "float32"}}, {{"a", {1}, "float32"}}, {}};
  EXPECT_FALSE(flatten_modules(twice, {}));
  ModuleEntry empty{"", "M", {{"", {1}, "float32"}}, {}, {}};
  EXPECT_FALSE(flatten_modules(empty, {}));
  EXPECT_FALSE(flatten_modules(model(), {{"embed.weight", "tail.weight"}}));
}

TEST(ModuleTree, RefusesSizesThatDoNotAddUp) {
  ModuleEntry negative{"", "M", {{"a", {-1}, "float32"}}, {}, {}};
  EXPECT_FALSE(flatten_modules(negative, {}));
  ModuleEntry huge{"", "M", {{"a", {1LL << 40, 1LL << 40}, "float32"}}, {}, {}};
  EXPECT_FALSE(flatten_modules(huge, {}));
  ModuleEntry sum{"", "M", {}, {}, {}};
  for (const auto* name : {"a", "b", "c", "d", "e"}) {
    sum.parameters.push_back({name, {1LL << 53}, "float32"});
  }
  EXPECT_FALSE(flatten_modules(sum, {}));
}

TEST(ModuleTree, RefusesNestingWithoutEnd) {
  ModuleEntry root{"", "M", {}, {}, {}};
  auto* deepest = &root;
  for (int depth = 0; depth < 300; ++depth) {
    deepest->children.push_back({"m", "M", {}, {}, {}});
    deepest = &deepest->children.front();
  }
  const auto tree = flatten_modules(root, {});
  ASSERT_FALSE(tree);
  EXPECT_EQ(tree.error().kind, ErrorKind::ResourceExhausted);
}

}  // namespace
}  // namespace muster

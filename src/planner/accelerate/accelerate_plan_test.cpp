#include "planner/accelerate/accelerate_plan.h"

#include <gtest/gtest.h>

#include "planner/accelerate/accelerate_placer.h"

namespace muster {
namespace {

using NamedPlaces = std::vector<std::pair<std::string, std::string>>;
using Budgets = std::vector<std::pair<std::string, std::int64_t>>;

ModuleEntry linear(std::string name, std::int64_t rows, std::int64_t columns) {
  return {std::move(name),
          "Linear",
          {{"weight", {rows, columns}, "float32"}, {"bias", {rows}, "float32"}},
          {},
          {}};
}

/// The model of accelerate's tests: 64, 72 and 100 bytes.
ModuleEntry model_for_test(std::string name, std::int64_t last_rows = 5) {
  ModuleEntry norm{"batchnorm",
                   "BatchNorm1d",
                   {{"weight", {4}, "float32"}, {"bias", {4}, "float32"}},
                   {{"running_mean", {4}, "float32"},
                    {"running_var", {4}, "float32"},
                    {"num_batches_tracked", {}, "int64"}},
                   {}};
  return {std::move(name),
          "ModelForTest",
          {},
          {},
          {linear("linear1", 4, 3), norm, linear("linear2", last_rows, 4)}};
}

ModuleEntry sequence(std::vector<ModuleEntry> children) {
  return {"", "Sequential", {}, {}, std::move(children)};
}

PlaceBudgets budgets_of(const Budgets& bytes) {
  PlaceBudgets budgets;
  for (const auto& [name, count] : bytes) budgets.push_back({*parse_place(name), count * 8});
  return *ordered_budgets(std::move(budgets));
}

ModuleCase case_of(const ModuleEntry& root, const Budgets& budgets, ModuleStrategy strategy,
                   const std::vector<std::vector<std::string>>& ties = {}) {
  ModuleCase problem;
  problem.tree = *flatten_modules(root, ties);
  problem.budgets = budgets_of(budgets);
  problem.strategy = strategy;
  return problem;
}

NamedPlaces map_of(const ModuleCase& problem, PlacementRules rules = PlacementRules::Accelerate) {
  const auto plan = plan_modules(problem, rules);
  EXPECT_TRUE(plan);
  NamedPlaces map;
  if (!plan) return map;
  for (const auto& [node, place] : plan->placement.map) {
    map.emplace_back(problem.tree.nodes[node].name, place.name());
  }
  return map;
}

Budgets balanced(const ModuleEntry& root, const Budgets& budgets, bool is_low_zero,
                 PlacementRules rules = PlacementRules::Accelerate,
                 const std::vector<std::string>& no_split = {}) {
  const auto tree = *flatten_modules(root, {});
  const auto bits = *module_bits(tree, {});
  const auto result =
      balanced_budgets({tree, bits, no_split}, budgets_of(budgets), is_low_zero, rules);
  Budgets bytes;
  if (!result) return {{"KeyError", 0}};
  for (const auto& budget : *result) bytes.emplace_back(budget.place.name(), budget.bits / 8);
  return bytes;
}

// The six expectations of accelerate's own tests/test_modeling_utils.py, test_get_balanced_memory
// and its siblings. 236 // 2 + int(1.25 * 78) = 215.
TEST(AccelerateBalance, CapsAllGpusButTheLast) {
  const auto model = model_for_test("");
  EXPECT_EQ(balanced(model, {{"0", 200}, {"1", 200}}, false), (Budgets{{"0", 200}, {"1", 200}}));
  EXPECT_EQ(balanced(model, {{"0", 300}, {"1", 300}}, false), (Budgets{{"0", 215}, {"1", 300}}));
  EXPECT_EQ(balanced(model, {{"0", 300}, {"1", 500}}, false), (Budgets{{"0", 215}, {"1", 500}}));
  EXPECT_EQ(balanced(model, {{"0", 0}, {"1", 300}, {"2", 300}}, false),
            (Budgets{{"0", 0}, {"1", 215}, {"2", 300}}));
  EXPECT_EQ(balanced(model, {{"0", 300}, {"cpu", 1000}}, false),
            (Budgets{{"0", 300}, {"cpu", 1000}}));
}

TEST(AccelerateBalance, LowZeroLeavesTheFirstGpuTheRest) {
  const auto model = model_for_test("");
  EXPECT_EQ(balanced(model, {{"0", 200}, {"1", 200}}, true), (Budgets{{"0", 36}, {"1", 200}}));
  EXPECT_EQ(balanced(model, {{"0", 300}, {"1", 500}}, true), (Budgets{{"0", 0}, {"1", 500}}));
}

// huggingface/accelerate issue 4297: keys 0 and 3 end in KeyError: 1; a GPU without budget in
// between is taken for the last.
TEST(AccelerateBalance, LowZeroReadsKeysAndTheRepairReadsGpus) {
  const auto model = model_for_test("");
  EXPECT_EQ(balanced(model, {{"0", 200}, {"3", 200}}, true), (Budgets{{"KeyError", 0}}));
  EXPECT_EQ(balanced(model, {{"0", 200}, {"3", 200}}, true, PlacementRules::Repaired),
            (Budgets{{"0", 36}, {"3", 200}}));
  EXPECT_EQ(balanced(model, {{"0", 300}, {"1", 0}, {"2", 300}}, true),
            (Budgets{{"0", 236}, {"1", 0}, {"2", 300}}));
  EXPECT_EQ(balanced(model, {{"0", 300}, {"1", 0}, {"2", 300}}, true, PlacementRules::Repaired),
            (Budgets{{"0", 0}, {"1", 0}, {"2", 300}}));
}

// Blocks of 64 and 4 x 100 = 400 bytes: accelerate makes room for the first, int(1.25 * 64) = 80 or
// int(1.25 * mean 232) = 290; the repair for the second, 500. 464 // 2 = 232.
TEST(AccelerateBalance, TheRepairMakesRoomForTheLargestBlock) {
  const auto model = sequence({linear("small", 4, 3), linear("large", 20, 4)});
  EXPECT_EQ(
      balanced(model, {{"0", 9000}, {"1", 9000}}, false, PlacementRules::Accelerate, {"Linear"}),
      (Budgets{{"0", 232 + 290}, {"1", 9000}}));
  EXPECT_EQ(
      balanced(model, {{"0", 9000}, {"1", 9000}}, false, PlacementRules::Repaired, {"Linear"}),
      (Budgets{{"0", 232 + 500}, {"1", 9000}}));
}

// accelerate's tests/test_modeling_utils.py, test_infer_auto_device_map.
TEST(AcceleratePlan, KeepsRoomForTheLargestLayerOnTheFirstGpu) {
  const auto problem =
      case_of(model_for_test(""), {{"0", 200}, {"1", 200}}, ModuleStrategy::Sequential);
  EXPECT_EQ(map_of(problem), (NamedPlaces{{"linear1", "0"}, {"batchnorm", "1"}, {"linear2", "1"}}));
}

TEST(AcceleratePlan, KeepsTiesTogether) {
  const auto problem = case_of(model_for_test("", 4), {{"0", 200}, {"1", 200}},
                               ModuleStrategy::Sequential, {{"linear1.bias", "linear2.bias"}});
  EXPECT_EQ(map_of(problem).front().second, map_of(problem).back().second);
}

TEST(AcceleratePlan, SplitsAModuleThatDoesNotFit) {
  auto problem = case_of(sequence({model_for_test("0"), model_for_test("1"), model_for_test("2")}),
                         {{"0", 500}, {"1", 500}}, ModuleStrategy::Sequential);
  EXPECT_EQ(
      map_of(problem),
      (NamedPlaces{
          {"0", "0"}, {"1.linear1", "0"}, {"1.batchnorm", "0"}, {"1.linear2", "1"}, {"2", "1"}}));
  problem.no_split_classes = {"ModelForTest"};
  EXPECT_EQ(map_of(problem), (NamedPlaces{{"0", "0"}, {"1", "1"}, {"2", "1"}}));
}

TEST(AcceleratePlan, BringsTiedModulesForward) {
  const auto root =
      sequence({model_for_test("layer1"), model_for_test("layer2"), model_for_test("layer3")});
  const auto problem = case_of(root, {{"0", 400}, {"1", 500}}, ModuleStrategy::Sequential,
                               {{"layer3.linear2.weight", "layer1.linear2.weight"}});
  EXPECT_EQ(map_of(problem), (NamedPlaces{{"layer1", "0"},
                                          {"layer2", "1"},
                                          {"layer3.linear1", "1"},
                                          {"layer3.batchnorm", "1"},
                                          {"layer3.linear2", "0"}}));
}

// huggingface/accelerate issue 3956: a block with a buffer of its own is split, and accelerate's
// map leaves the buffer out.
TEST(AcceleratePlan, GivesForgottenBuffersAPlace) {
  ModuleEntry block{"block",
                    "Block",
                    {},
                    {{"layer_scalar", {1}, "float32"}},
                    {linear("up", 25, 3), linear("down", 25, 3)}};  // 400 bytes each
  const auto problem = case_of(sequence({block}), {{"0", 700}, {"1", 500}, {"cpu", 9000}},
                               ModuleStrategy::Sequential);
  const auto bits = *module_bits(problem.tree, {});
  const auto theirs = place_as_accelerate({problem.tree, bits, problem.no_split_classes},
                                          problem.budgets, problem.options);
  ASSERT_TRUE(theirs);
  EXPECT_FALSE(is_whole(problem.tree, theirs->map));
  EXPECT_EQ(map_of(problem),
            (NamedPlaces{{"block.up", "1"}, {"block.down", "cpu"}, {"block.layer_scalar", "1"}}));
}

// huggingface/transformers issue 46566: the tied parameter waits by itself after a split, and
// accelerate ends in an IndexError.
TEST(AcceleratePlan, PlacesTiesThatAccelerateLoses) {
  ModuleEntry root{"", "Model", {{"shared", {100}, "float32"}}, {}, {linear("a", 25, 3)}};
  root.children.front().parameters.push_back({"extra", {100}, "float32"});
  const auto problem = case_of(root, {{"0", 2000}, {"cpu", 9000}}, ModuleStrategy::Sequential,
                               {{"a.extra", "shared"}});
  const auto bits = *module_bits(problem.tree, {});
  ASSERT_TRUE(place_as_accelerate({problem.tree, bits, problem.no_split_classes}, problem.budgets,
                                  problem.options));
  ModuleEntry swapped{"", "Model", {}, {}, {linear("a", 25, 3)}};
  swapped.children.front().parameters.push_back({"extra", {100}, "float32"});
  ModuleEntry owner{"b", "Outer", {{"shared", {100}, "float32"}}, {}, {linear("c", 25, 3)}};
  swapped.children.push_back(owner);
  // a 800 bytes with extra; b: 400 besides the tied parameter, and together they do not fit.
  const auto lost = case_of(swapped, {{"0", 1300}, {"cpu", 9000}}, ModuleStrategy::Sequential,
                            {{"a.extra", "b.shared"}});
  const auto lost_bits = *module_bits(lost.tree, {});
  EXPECT_FALSE(place_as_accelerate({lost.tree, lost_bits, lost.no_split_classes}, lost.budgets,
                                   lost.options));
  const auto map = plan_modules(lost, PlacementRules::Accelerate)->placement.map;
  EXPECT_TRUE(is_whole(lost.tree, map));
}

// A first layer larger than GPU 0 (huggingface/accelerate issue 3041): everything follows it.
TEST(AcceleratePlan, OneLargeLayerTakesAllAlongOnlyInAccelerate) {
  const auto problem =
      case_of(sequence({linear("embed", 100, 9), linear("a", 5, 4), linear("b", 5, 4)}),
              {{"0", 1000}, {"cpu", 90000}}, ModuleStrategy::Auto);
  EXPECT_EQ(map_of(problem), (NamedPlaces{{"", "cpu"}}));
  // 4,000 bytes return to a GPU that cannot hold them: no room can be kept, all stays away.
  EXPECT_EQ(map_of(problem, PlacementRules::Repaired), (NamedPlaces{{"", "cpu"}}));
  const auto roomy =
      case_of(sequence({linear("embed", 100, 9), linear("a", 5, 4), linear("b", 5, 4)}),
              {{"0", 1000}, {"1", 1000}, {"cpu", 90000}}, ModuleStrategy::Auto);
  EXPECT_EQ(map_of(roomy), (NamedPlaces{{"", "cpu"}}));
  EXPECT_EQ(map_of(roomy, PlacementRules::Repaired),
            (NamedPlaces{{"embed", "cpu"}, {"a", "1"}, {"b", "1"}}));
}

// Ten layers of 100 bytes on 800 and 300: accelerate caps GPU 0 at 1000 // 2 + 125 = 625, keeps 100
// of them free, and offloads two layers; the repair fills GPU 0.
TEST(AcceleratePlan, TheRepairOffloadsNothingThatFits) {
  std::vector<ModuleEntry> layers;
  for (int i = 0; i < 10; ++i) layers.push_back(linear(std::to_string(i), 5, 4));
  const auto problem =
      case_of(sequence(layers), {{"0", 800}, {"1", 300}, {"cpu", 9000}}, ModuleStrategy::Auto);
  EXPECT_EQ(map_of(problem).back().second, "cpu");
  for (const auto& [name, place] : map_of(problem, PlacementRules::Repaired)) {
    EXPECT_NE(place, "cpu") << name;
  }
  // The caps give way no further than they must: 700 bytes hold seven layers, the other three fit.
  auto low_zero = case_of(sequence(layers), {{"0", 1000}, {"1", 350}, {"cpu", 9000}},
                          ModuleStrategy::BalancedLowZero);
  const auto plan = plan_modules(low_zero, PlacementRules::Repaired);
  EXPECT_EQ(plan->balanced.front().bits, 700 * 8);
  EXPECT_EQ(plan->balanced[1].bits, 350 * 8);
}

TEST(AcceleratePlan, ACustomMapMustCoverEverythingOnce) {
  auto problem = case_of(model_for_test("", 4), {{"0", 500}}, ModuleStrategy::Custom,
                         {{"linear1.bias", "linear2.bias"}});
  const Place gpu{PlaceKind::Gpu, 0};
  const Place host{PlaceKind::Cpu, 0};
  const auto message = [&](std::vector<std::pair<std::string, Place>> map) {
    problem.custom_map = std::move(map);
    const auto plan = plan_modules(problem, PlacementRules::Repaired);
    return plan ? std::string("whole") : plan.error().message;
  };
  EXPECT_EQ(message({{"", gpu}}), "whole");
  EXPECT_EQ(message({{"linear1", gpu}, {"batchnorm", host}, {"linear2", gpu}}), "whole");
  EXPECT_EQ(message({{"linear1", gpu}, {"batchnorm", host}}),
            "the device map leaves tensors without a place: linear2.weight, linear2.bias");
  EXPECT_EQ(
      message({{"linear1", gpu}, {"batchnorm", gpu}, {"linear2", host}}),
      "the device map puts one tied tensor on two places: linear1.bias on 0, linear2.bias on cpu");
  EXPECT_EQ(
      message({{"linear1", gpu}, {"batchnrom", gpu}, {"linear2", gpu}}),
      "the device map names what the model does not have: 'batchnrom' (did you mean 'batchnorm'?)");
  EXPECT_EQ(message({{"", gpu}, {"linear1", host}}),
            "the device map places '' and, below it, 'linear1'");
}

}  // namespace
}  // namespace muster

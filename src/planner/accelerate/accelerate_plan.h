#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/accelerate/accelerate_device_map.h"

namespace muster {

/// How modules are spread, by accelerate's names ("auto", "balanced", "balanced_low_0",
/// "sequential") and "custom" for a map that is given.
enum class ModuleStrategy : std::uint8_t { Auto, Balanced, BalancedLowZero, Sequential, Custom };

/// Errors: InvalidArgument, with the nearest name.
Result<ModuleStrategy> parse_module_strategy(std::string_view name);

/// A tree of modules to be placed.
struct ModuleCase {
  ModuleTree tree;
  PlaceBudgets budgets;
  std::vector<std::string> no_split_classes;
  ModuleStrategy strategy = ModuleStrategy::Auto;
  PlacementOptions options;
  LoadDtypes dtypes;
  std::vector<std::pair<std::string, Place>> custom_map;  // Custom only
};

struct ModulePlan {
  PlaceBudgets balanced;  // the budgets that the placer kept
  ModulePlacement placement;
};

/// Places `problem`. Under Accelerate the answer is accelerate's wherever that gives every tensor a
/// place and keeps ties together; where it stops, or leaves a tensor out, the answer is whole all
/// the same. Under Repaired nothing is offloaded that the strategy's caps alone keep off the GPUs.
///
/// Errors: InvalidArgument (a dtype that is not known, a custom map that is not whole),
/// ResourceExhausted. Threads: pure.
Result<ModulePlan> plan_modules(const ModuleCase& problem, PlacementRules rules);

}  // namespace muster

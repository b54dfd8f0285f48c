// Chooses between accelerate's answer and the repaired one. Asked to be accelerate, its map is kept
// wherever it is usable, is completed where only buffers are missing, and is replaced where it
// stopped or left a parameter out: a caller always gets a whole map. Asked to be right, the even
// caps hold only as long as they push nothing more off the accelerators. Otherwise they are raised
// by bisection to the least that suffices, or dropped where no cap does.

#include "planner/accelerate/accelerate_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "planner/accelerate/accelerate_placer.h"
#include "planner/accelerate/accelerate_repair.h"

namespace muster {
namespace {

constexpr std::array<std::pair<std::string_view, ModuleStrategy>, 5> kStrategies = {{
    {"auto", ModuleStrategy::Auto},
    {"balanced", ModuleStrategy::Balanced},
    {"balanced_low_0", ModuleStrategy::BalancedLowZero},
    {"sequential", ModuleStrategy::Sequential},
    {"custom", ModuleStrategy::Custom},
}};

constexpr std::int64_t kBitsPerByte = 8;

bool is_balanced(ModuleStrategy strategy) {
  return strategy != ModuleStrategy::Sequential && strategy != ModuleStrategy::Custom;
}

ModulePlan plan_as_accelerate(const SizedTree& model, const ModuleCase& problem) {
  ModulePlan plan{problem.budgets, {}};
  if (is_balanced(problem.strategy)) {
    const bool is_low_zero = problem.strategy == ModuleStrategy::BalancedLowZero;
    auto balanced =
        balanced_budgets(model, problem.budgets, is_low_zero, PlacementRules::Accelerate);
    plan.balanced =
        balanced ? *std::move(balanced)
                 : *balanced_budgets(model, problem.budgets, is_low_zero, PlacementRules::Repaired);
  }
  const auto theirs = place_as_accelerate(model, plan.balanced, problem.options);
  if (theirs && is_whole(model.tree, theirs->map)) {
    plan.placement = *theirs;
    return plan;
  }
  if (theirs) {
    if (auto completed = completed_device_map(model, plan.balanced, theirs->map)) {
      plan.placement = {*std::move(completed), theirs->has_buffer_warning};
      return plan;
    }
  }
  plan.placement = place_repaired(model, plan.balanced, problem.options);
  return plan;
}

/// The least cap on the accelerators (`is_low_zero`: on the first alone) under which nothing is
/// offloaded; without a cap nothing is.
ModulePlan plan_with_least_cap(const SizedTree& model, const ModuleCase& problem,
                               ModulePlan uncapped) {
  constexpr int halvings = 24;  // of the largest budget: to 5 kB of 80 GB
  const bool is_low_zero = problem.strategy == ModuleStrategy::BalancedLowZero;
  std::int64_t too_low = -1;
  std::int64_t enough = 0;
  for (const auto& budget : problem.budgets) {
    if (budget.place.is_accelerator()) enough = std::max(enough, budget.bits);
  }
  ModulePlan least = std::move(uncapped);
  for (int i = 0; i < halvings && enough - too_low > 1; ++i) {
    const auto cap = (too_low + (enough - too_low) / 2) / kBitsPerByte * kBitsPerByte;
    ModulePlan plan{problem.budgets, {}};
    bool is_first = true;
    for (auto& budget : plan.balanced) {
      if (!budget.place.is_accelerator() || budget.bits == 0) continue;
      if (is_first || !is_low_zero) budget.bits = std::min(budget.bits, cap);
      is_first = false;
    }
    plan.placement = place_repaired(model, plan.balanced, problem.options);
    if (offloaded_bits(model, plan.placement.map) > 0) {
      too_low = cap;
    } else {
      enough = cap;
      least = std::move(plan);
    }
  }
  return least;
}

/// The caps of a balanced strategy serve an even spread; accelerate keeps them even where they push
/// modules off the GPUs that have room (huggingface/accelerate issue 1888). Here they give way, as
/// far as they must.
ModulePlan plan_repaired(const SizedTree& model, const ModuleCase& problem) {
  ModulePlan plan{problem.budgets, place_repaired(model, problem.budgets, problem.options)};
  if (!is_balanced(problem.strategy)) return plan;
  ModulePlan even;
  even.balanced =
      *balanced_budgets(model, problem.budgets, problem.strategy == ModuleStrategy::BalancedLowZero,
                        PlacementRules::Repaired);
  even.placement = place_repaired(model, even.balanced, problem.options);
  const auto even_bits = offloaded_bits(model, even.placement.map);
  const auto plan_bits = offloaded_bits(model, plan.placement.map);
  if (even_bits <= plan_bits) return even;
  return plan_bits == 0 ? plan_with_least_cap(model, problem, std::move(plan)) : plan;
}

}  // namespace

Result<ModuleStrategy> parse_module_strategy(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [known, strategy] : kStrategies) {
    if (known == name) return strategy;
    names.emplace_back(known);
  }
  const auto nearest = nearest_name(name, names);
  return Error{ErrorKind::InvalidArgument,
               fmt::format("unknown strategy '{}'{}", name,
                           nearest ? fmt::format(": did you mean {}?", *nearest)
                                   : fmt::format(" (there are {})", fmt::join(names, ", ")))};
}

Result<ModulePlan> plan_modules(const ModuleCase& problem, PlacementRules rules) {
  const auto bits = MUSTER_TRY(module_bits(problem.tree, problem.dtypes));
  const SizedTree model{problem.tree, bits, problem.no_split_classes};
  if (problem.strategy == ModuleStrategy::Custom) {
    ModulePlan plan{problem.budgets, {}};
    plan.placement.map = MUSTER_TRY(checked_device_map(problem.tree, problem.custom_map));
    return plan;
  }
  return rules == PlacementRules::Accelerate ? plan_as_accelerate(model, problem)
                                             : plan_repaired(model, problem);
}

}  // namespace muster

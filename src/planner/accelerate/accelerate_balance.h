#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/accelerate/module_tree.h"
#include "planner/plan/max_memory.h"

namespace muster {

/// A tree with what it takes: what every step of placing it reads.
struct SizedTree {
  const ModuleTree& tree;
  const std::vector<std::int64_t>& bits;  // [nodes], of module_bits
  const std::vector<std::string>& no_split_classes;

  /// A module of a class that stays on one device, or with no modules in it.
  bool is_layer(std::uint32_t node) const;
};

/// Which rules hold where accelerate's own lead to a fault.
enum class PlacementRules : std::uint8_t {
  Accelerate,  // exactly those of 1.15.0
  Repaired,    // each departure is stated beside the code
};

/// The budgets that accelerate's `balanced` (and `auto`) gives to the placer: every GPU but the
/// last is capped at the model over the GPUs plus some room; with `is_low_zero` GPU 0 gets only
/// what the others cannot hold.
///
/// nullopt: accelerate stops with a KeyError (budgets of `balanced_low_0` whose GPUs are not
/// numbered 0, 1, 2, ...); never under Repaired.
/// Source: accelerate 1.15.0, utils/modeling.py, get_balanced_memory. Threads: pure.
std::optional<PlaceBudgets> balanced_budgets(const SizedTree& model, const PlaceBudgets& budgets,
                                             bool is_low_zero, PlacementRules rules);

}  // namespace muster

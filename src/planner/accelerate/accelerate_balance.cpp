// accelerate's balanced budgets, in the same arithmetic: its floats are exact here because a size
// in bits fits a double, and its truncations to int stand where it truncates. Results must be equal
// bit for bit, as one bit more of budget can move a layer. The two sets of rules share the code, so
// that each departure of the repaired ones is visible at its place. Source: accelerate 1.15.0,
// utils/modeling.py, get_balanced_memory.

#include "planner/accelerate/accelerate_balance.h"

#include <algorithm>

namespace muster {
namespace {

constexpr std::int64_t kBitsPerByte = 8;

/// Bytes as Python sees them: a float only where a bool made them fractional, and a double holds
/// both exactly.
double bytes_of(std::int64_t bits) { return static_cast<double>(bits) / kBitsPerByte; }

/// Whether any counted tensor lies below `node`; accelerate knows no other modules.
std::vector<bool> nodes_with_tensors(const ModuleTree& tree) {
  std::vector<bool> has(tree.nodes.size(), false);
  for (std::uint32_t node = static_cast<std::uint32_t>(tree.nodes.size()); node-- > 1;) {
    const auto& entry = tree.nodes[node];
    if (entry.kind != ModuleNodeKind::Module && !entry.counted_at) has[node] = true;
    if (has[node]) has[entry.parent] = true;
  }
  return has;
}

/// accelerate takes the first block of each class for the size of all of them, too little room
/// where blocks differ; parameters are walked before buffers, so a block with buffers alone comes
/// last. Repaired: the largest block.
double block_bytes(const SizedTree& model, PlacementRules rules) {
  const auto& tree = model.tree;
  std::vector<bool> has_parameter(tree.nodes.size(), false);
  for (std::uint32_t node = static_cast<std::uint32_t>(tree.nodes.size()); node-- > 1;) {
    const auto& entry = tree.nodes[node];
    if (entry.kind == ModuleNodeKind::Parameter && !entry.counted_at) has_parameter[node] = true;
    if (has_parameter[node]) has_parameter[entry.parent] = true;
  }
  const auto has_tensor = nodes_with_tensors(tree);
  std::int64_t largest = 0;
  for (const auto& class_name : model.no_split_classes) {
    std::int64_t first = 0;
    bool is_found = false;
    for (const bool wants_parameter : {true, false}) {
      for (std::uint32_t node = 1; node < tree.nodes.size(); ++node) {
        if (!tree.is_module(node) || tree.nodes[node].class_name != class_name) continue;
        if (!has_tensor[node] || has_parameter[node] != wants_parameter) continue;
        if (is_found && rules == PlacementRules::Accelerate) break;
        first = std::max(first, model.bits[node]);
        is_found = true;
      }
    }
    largest = std::max(largest, first);
  }
  return bytes_of(largest);
}

/// The mean of the modules that are left without children once the tensors are taken away.
double mean_leaf_bytes(const SizedTree& model) {
  const auto& tree = model.tree;
  const auto has_tensor = nodes_with_tensors(tree);
  std::int64_t sum = 0;
  std::int64_t count = 0;
  for (std::uint32_t node = 1; node < tree.nodes.size(); ++node) {
    if (!tree.is_module(node) || !has_tensor[node]) continue;
    bool is_leaf = true;
    for (auto below = node + 1; below < tree.nodes[node].end; below = tree.nodes[below].end) {
      is_leaf = is_leaf && !(tree.is_module(below) && has_tensor[below]);
    }
    if (!is_leaf) continue;
    sum += model.bits[node];
    ++count;
  }
  const double mean = bytes_of(sum) / static_cast<double>(std::max<std::int64_t>(count, 1));
  return static_cast<double>(static_cast<std::int64_t>(mean));
}

/// What the other GPUs cannot hold. accelerate reads the budgets of keys 1 to n - 1, whatever the
/// keys are (huggingface/accelerate issue 4297); Repaired: of all GPUs but the first.
bool cap_first_gpu(std::int64_t total_bits, std::int64_t gpu_count,
                   const std::vector<PlaceBudget*>& gpus, PlaceBudgets& budgets,
                   PlacementRules rules) {
  std::int64_t rest = total_bits;
  if (rules == PlacementRules::Repaired) {
    for (std::size_t i = 1; i < gpus.size(); ++i)
      rest = std::max<std::int64_t>(0, rest - gpus[i]->bits);
    gpus.front()->bits = std::min(rest, gpus.front()->bits);
    return true;
  }
  const auto at = [&](std::int64_t key) {
    return std::find_if(budgets.begin(), budgets.end(), [key](const PlaceBudget& budget) {
      return budget.place.kind == PlaceKind::Gpu && budget.place.index == key;
    });
  };
  for (std::int64_t key = 1; key < gpu_count; ++key) {
    if (at(key) == budgets.end()) return false;
    rest = std::max<std::int64_t>(0, rest - at(key)->bits);
  }
  if (at(0) == budgets.end()) return false;
  at(0)->bits = std::min(rest, at(0)->bits);
  return true;
}

}  // namespace

bool SizedTree::is_layer(std::uint32_t node) const {
  if (!tree.is_module(node)) return true;
  const auto& classes = no_split_classes;
  return std::find(classes.begin(), classes.end(), tree.nodes[node].class_name) != classes.end() ||
         !tree.has_child_module(node);
}

std::optional<PlaceBudgets> balanced_budgets(const SizedTree& model, const PlaceBudgets& budgets,
                                             bool is_low_zero, PlacementRules rules) {
  PlaceBudgets result = budgets;
  std::vector<PlaceBudget*> gpus;
  std::int64_t accelerator_count = 0;
  for (auto& budget : result) {
    if (budget.bits <= 0 || !budget.place.is_accelerator()) continue;
    ++accelerator_count;
    if (budget.place.kind == PlaceKind::Gpu) gpus.push_back(&budget);
  }
  if (accelerator_count == 0) return result;
  if (accelerator_count == 1) is_low_zero = false;

  const std::int64_t share_count = is_low_zero ? accelerator_count - 1 : accelerator_count;
  const std::int64_t share = model.bits[0] / (kBitsPerByte * share_count);
  const double room = 1.25 * std::max(block_bytes(model, rules), mean_leaf_bytes(model));
  const std::int64_t cap = (share + static_cast<std::int64_t>(room)) * kBitsPerByte;
  for (std::size_t i = 0; i + 1 < gpus.size(); ++i) {
    const bool is_spared =
        is_low_zero && (rules == PlacementRules::Repaired ? i == 0 : gpus[i]->place.index == 0);
    if (!is_spared) gpus[i]->bits = std::min(cap, gpus[i]->bits);
  }
  if (is_low_zero && !gpus.empty() &&
      !cap_first_gpu(model.bits[0], accelerator_count, gpus, result, rules)) {
    return std::nullopt;
  }
  return result;
}

}  // namespace muster

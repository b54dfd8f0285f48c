// Makes a module tree of a model's tensor names, the only thing that weight files say about its
// modules: every part of a dotted name is a module, and each block gets the one class that must not
// be split. A tied head has no tensor of its own in the files, but transformers creates the
// parameter; it is added with the tie, or accelerate would see another model.

#include "planner/forms/accelerate_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "planner/accelerate/accelerate_plan.h"
#include "planner/plan/device_budget.h"

namespace muster {
namespace {

constexpr std::string_view kBlockClass = "Block";

// accelerate's words for the element types of our files.
Result<std::string> torch_dtype(const WeightTensor& tensor) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> names{{
      {"F64", "float64"},
      {"F32", "float32"},
      {"F16", "float16"},
      {"BF16", "bfloat16"},
      {"I64", "int64"},
      {"I32", "int32"},
      {"I16", "int16"},
      {"I8", "int8"},
      {"U8", "uint8"},
      {"BOOL", "bool"},
  }};
  for (const auto& [file_name, torch_name] : names) {
    if (file_name == tensor.dtype) return std::string(torch_name);
  }
  return Error{ErrorKind::Unsupported,
               fmt::format("accelerate has no size for {} of type {}", tensor.name, tensor.dtype)};
}

ModuleEntry& child_of(ModuleEntry& parent, const std::string& name) {
  const auto found = std::find_if(parent.children.begin(), parent.children.end(),
                                  [&](const auto& child) { return child.name == name; });
  if (found != parent.children.end()) return *found;
  ModuleEntry child;
  child.name = name;
  child.class_name = "Module";
  parent.children.push_back(std::move(child));
  return parent.children.back();
}

ModuleEntry& module_at(ModuleEntry& root, std::string_view path) {
  auto* module = &root;
  for (const auto& name : split(path, '.')) module = &child_of(*module, name);
  return *module;
}

void add_parameter(ModuleEntry& root, std::string_view name, TensorEntry entry) {
  const auto dot = name.rfind('.');
  entry.name = std::string(name.substr(dot == std::string_view::npos ? 0 : dot + 1));
  auto& owner = dot == std::string_view::npos ? root : module_at(root, name.substr(0, dot));
  owner.parameters.push_back(std::move(entry));
}

Result<ModuleEntry> module_tree_of(const ModelDescription& model,
                                   std::vector<std::vector<std::string>>& ties) {
  ModuleEntry root;
  root.class_name = "Model";
  for (const auto& unit : model.units) {
    for (const auto index : unit.tensors) {
      const auto& tensor = model.tensors[index];
      add_parameter(root, tensor.name, {{}, tensor.shape, MUSTER_TRY(torch_dtype(tensor))});
    }
    if (unit.kind == UnitKind::Block) module_at(root, unit.name).class_name = kBlockClass;
  }
  const auto& embedding = model.units.front();
  if (model.shape.has_tied_head && !embedding.tensors.empty()) {
    const auto& table = model.tensors[embedding.tensors.front()];
    const auto head = model.units.back().modules.back() + ".weight";
    add_parameter(root, head, {{}, table.shape, MUSTER_TRY(torch_dtype(table))});
    ties.push_back({table.name, head});
  }
  return root;
}

Result<ModuleStrategy> strategy_of(const PlanRequest& request) {
  switch (request.strategy) {
    case PlanStrategy::Auto:
      return ModuleStrategy::Auto;
    case PlanStrategy::Balanced:
      return ModuleStrategy::Balanced;
    case PlanStrategy::BalancedLow0:
      return ModuleStrategy::BalancedLowZero;
    case PlanStrategy::Sequential:
      return ModuleStrategy::Sequential;
    default:
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("accelerate has no strategy {}: it has auto, balanced, "
                               "balanced_low_0 and sequential",
                               plan_strategy_name(request.strategy))};
  }
}

Result<PlaceBudgets> budgets_of(const Machine& machine, const PlanRequest& request) {
  auto without_margin = request;
  without_margin.may_offload = true;
  const auto budgets = MUSTER_TRY(machine_budgets(machine, PlanMargin{}, without_margin));
  constexpr std::int64_t bits = 8;
  PlaceBudgets places;
  for (std::uint32_t i = 0; i < machine.devices.size(); ++i) {
    if (machine.devices[i].kind == DeviceKind::Cpu) continue;
    places.push_back(
        {{PlaceKind::Gpu, i}, static_cast<std::int64_t>(budgets.devices[i].usable_bytes) * bits});
  }
  places.push_back(
      {{PlaceKind::Cpu, 0}, static_cast<std::int64_t>(budgets.host.usable_bytes) * bits});
  return ordered_budgets(std::move(places));
}

}  // namespace

Result<std::string> accelerate_map_of(const ModelDescription& model, const Machine& machine,
                                      const PlanRequest& request) {
  std::vector<std::vector<std::string>> ties;
  const auto root = MUSTER_TRY(module_tree_of(model, ties));
  ModuleCase problem{.tree = MUSTER_TRY(flatten_modules(root, ties)),
                     .budgets = MUSTER_TRY(budgets_of(machine, request)),
                     .no_split_classes = {std::string(kBlockClass)},
                     .strategy = MUSTER_TRY(strategy_of(request)),
                     .options = {},
                     .dtypes = {.all = request.workload.dtype, .special = {}},
                     .custom_map = {}};
  const auto plan = MUSTER_TRY(plan_modules(problem, PlacementRules::Accelerate));
  auto map = nlohmann::ordered_json::object();
  for (const auto& [node, place] : plan.placement.map) {
    const auto& name = problem.tree.nodes[node].name;
    if (place.kind == PlaceKind::Gpu) {
      map[name] = place.index;
    } else {
      map[name] = place.name();
    }
  }
  return map.dump(2);
}

}  // namespace muster

// A map is carried out as it stands: nothing is moved to make it fit, and each run of units with
// the same target becomes a stage. The names are checked before any unit is placed, because a typo
// would otherwise fall through to a shorter name that covers the unit and give it the wrong device.
// A device may occur in several stages, so room is judged by device: what lasts adds up, while the
// peaks of a step do not, as only one stage of a device computes at a time.

#include "planner/plan/custom_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace muster {
namespace {

// Where a unit goes: a device of the machine, or off it.
struct Target {
  PlanPlace place = PlanPlace::Device;
  std::uint32_t device = 0;

  bool operator==(const Target&) const = default;
};

bool covers(std::string_view name, std::string_view module) {
  return name.empty() || name == module ||
         (module.starts_with(name) && module.size() > name.size() && module[name.size()] == '.');
}

Result<Target> target_of(const PlanState& state, const std::string& device) {
  if (device == "cpu" && state.budgets().host.margin_bytes + state.budgets().host.usable_bytes > 0)
    return Target{.place = PlanPlace::Host};
  if (device == "disk") return Target{.place = PlanPlace::Disk};
  return Target{.device = MUSTER_TRY(device_by_name(state.machine(), device))};
}

const std::pair<std::string, std::string>* entry_for(const PlanRequest& request,
                                                     std::string_view module) {
  const std::pair<std::string, std::string>* best = nullptr;
  for (const auto& entry : request.custom_map) {
    const bool is_longer = best == nullptr || entry.first.size() > best->first.size();
    if (covers(entry.first, module) && is_longer) best = &entry;
  }
  return best;
}

// Every name of the map must mean one or more whole units.
Status check_names(const PlanState& state) {
  std::vector<std::string> modules;
  for (const auto& unit : state.model().units)
    modules.insert(modules.end(), unit.modules.begin(), unit.modules.end());
  for (const auto& [name, device] : state.request().custom_map) {
    bool is_known = false;
    for (const auto& module : modules) {
      is_known |= covers(name, module);
      if (name != module && covers(module, name)) {
        return Error{ErrorKind::InvalidArgument,
                     fmt::format("the map cuts {} at {}: a layer is never split over devices",
                                 module, name)};
      }
    }
    if (!is_known) {
      const auto nearest = nearest_name(name, modules);
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("{} has no module {}{}", state.model().name, name,
                               nearest ? ": did you mean " + *nearest + "?" : "")};
    }
  }
  return Done{};
}

Result<Target> unit_target(const PlanState& state, const ModelUnit& unit) {
  std::optional<Target> target;
  std::string first_module;
  for (const auto& module : unit.modules) {
    const auto* entry = entry_for(state.request(), module);
    if (entry == nullptr) {
      return Error{ErrorKind::InvalidArgument, fmt::format("the map gives {} no device", module)};
    }
    const auto found = MUSTER_TRY(target_of(state, entry->second));
    if (target && *target != found) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("the map puts {} and {} on different devices: they are computed as "
                               "one",
                               first_module, module)};
    }
    target = found;
    if (first_module.empty()) first_module = module;
  }
  return target.value_or(Target{});
}

// Whether each place has room for all its stages together: a device may have several.
bool has_room(const PlannedCopy& copy) {
  std::map<std::pair<PlanPlace, std::uint32_t>, MemoryParts> used;
  for (const auto& stage : copy.stages) {
    if (stage.place == PlanPlace::Disk) continue;
    auto& parts = used[{stage.place, stage.devices.empty() ? 0 : stage.devices.front()}];
    parts.weights += stage.memory.weights;
    parts.kv_cache += stage.memory.kv_cache;
    parts.gradients += stage.memory.gradients;
    parts.optimizer += stage.memory.optimizer;
    parts.activations = std::max(parts.activations, stage.memory.activations);
    parts.logits = std::max(parts.logits, stage.memory.logits);
    parts.workspace = stage.memory.workspace;
    parts.context = stage.memory.context;
    if (parts.total() > stage.budget_bytes) return false;
  }
  return true;
}

}  // namespace

Result<Plan> plan_custom(const PlanState& state) {
  MUSTER_TRY(check_names(state));
  const auto placer = MUSTER_TRY(state.placer(1, 1));
  std::vector<Target> targets;
  for (const auto& unit : state.model().units)
    targets.push_back(MUSTER_TRY(unit_target(state, unit)));
  PlannedCopy copy;
  for (std::uint32_t first = 0, last = 0; first < targets.size(); first = last) {
    while (last < targets.size() && targets[last] == targets[first]) ++last;
    const auto& target = targets[first];
    if (target.place == PlanPlace::Device) {
      const StageSlot slot{.devices = {target.device},
                           .device_class = state.machine().devices[target.device].device_class,
                           .budget = state.budgets().devices[target.device]};
      copy.stages.push_back(placer.stage_on(slot, first, last));
    } else {
      const auto budget = target.place == PlanPlace::Host ? state.budgets().host : DeviceBudget{};
      copy.stages.push_back(placer.stage_off(target.place, budget, first, last));
    }
    copy.stages.back().why = "the map says so";
  }
  Plan plan = state.empty_plan();
  if (has_room(copy)) plan.copies.push_back(std::move(copy));
  return plan;
}

}  // namespace muster

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/accelerate/accelerate_balance.h"

namespace muster {

/// A device map: nodes of a tree, none below another, each with its place; ascending, so in the
/// order of the tree.
using DeviceMap = std::map<std::uint32_t, Place>;

/// What accelerate lets a caller choose beside budgets.
struct PlacementOptions {
  bool offload_buffers = false;      // buffers of offloaded modules leave the GPU, too
  bool fallback_allocation = false;  // a device that stays empty gets any module that fits
};

struct ModulePlacement {
  DeviceMap map;
  bool has_buffer_warning = false;  // buffers of offloaded modules fit on no GPU
};

/// Replaces all keys below a module by the module where they have one place and are at least two.
/// Source: accelerate 1.15.0, utils/modeling.py, clean_device_map. Cost: O(nodes).
DeviceMap cleaned_device_map(const ModuleTree& tree, const DeviceMap& map);

/// The place of every tensor; nullopt where no key covers it. [nodes], modules nullopt.
std::vector<std::optional<Place>> tensor_places(const ModuleTree& tree, const DeviceMap& map);

/// Whether every tensor has a place and tied parameters share theirs.
bool is_whole(const ModuleTree& tree, const DeviceMap& map);

/// Whether `offloaded_buffer_bits` fit beside what each accelerator holds (`used_bits`, by position
/// in `budgets`) on none of them. Source: accelerate 1.15.0, the end of infer_auto_device_map.
bool buffers_fit_nowhere(const PlaceBudgets& budgets, const std::vector<std::int64_t>& used_bits,
                         std::int64_t offloaded_buffer_bits);

/// A map that a caller made, by names of modules and tensors.
///
/// Errors: InvalidArgument (a name that is not in the model, with the nearest one; a name below
/// another; tensors without a place; tied parameters on two).
/// accelerate's check_device_map only warns of unknown names, and does not look at ties.
Result<DeviceMap> checked_device_map(
    const ModuleTree& tree, const std::vector<std::pair<std::string, Place>>& named_places);

}  // namespace muster

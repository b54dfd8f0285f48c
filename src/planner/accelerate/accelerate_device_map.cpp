// A map speaks of whole modules, while what must have a place is a tensor: every question here is
// answered by spreading keys to tensors or by gathering them again. The tree is in preorder, so a
// subtree is a range of indices, and both directions are one pass. Maps of callers are checked for
// more than accelerate checks, since a tied tensor on two devices would be loaded twice without a
// word.

#include "planner/accelerate/accelerate_device_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace muster {
namespace {

constexpr std::size_t kNamesShown = 3;  // of tensors without a place

Error unknown_name(const ModuleTree& tree, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& node : tree.nodes) names.push_back(node.name);
  const auto nearest = nearest_name(name, names);
  return invalid_error(fmt::format("the device map names what the model does not have: '{}'{}",
                                   name,
                                   nearest ? fmt::format(" (did you mean '{}'?)", *nearest) : ""));
}

Status check_coverage(const ModuleTree& tree, const DeviceMap& map) {
  const auto places = tensor_places(tree, map);
  std::vector<std::string> missing;
  for (std::uint32_t node = 0; node < tree.nodes.size(); ++node) {
    if (!tree.is_module(node) && !places[node]) missing.push_back(tree.nodes[node].name);
  }
  if (!missing.empty()) {
    const auto count = missing.size();
    missing.resize(std::min(count, kNamesShown));
    return invalid_error(
        fmt::format("the device map leaves tensors without a place: {}{}", fmt::join(missing, ", "),
                    count > kNamesShown ? fmt::format(" and {} more", count - kNamesShown) : ""));
  }
  for (const auto& group : tree.ties) {
    for (const auto member : group) {
      if (places[member] == places[group.front()]) continue;
      return invalid_error(
          fmt::format("the device map puts one tied tensor on two places: {} on {}, {} on {}",
                      tree.nodes[group.front()].name, places[group.front()]->name(),
                      tree.nodes[member].name, places[member]->name()));
    }
  }
  return Done{};
}

}  // namespace

DeviceMap cleaned_device_map(const ModuleTree& tree, const DeviceMap& map) {
  // Of the keys below each node: how many, and their place if it is one.
  struct Below {
    std::uint32_t count = 0;
    std::optional<Place> place;
    bool is_uniform = true;
  };
  std::vector<Below> below(tree.nodes.size());
  const auto add = [](Below& outer, std::uint32_t count, const Place& place, bool is_uniform) {
    outer.is_uniform = outer.is_uniform && is_uniform && (!outer.place || *outer.place == place);
    outer.place = place;
    outer.count += count;
  };
  for (std::uint32_t node = static_cast<std::uint32_t>(tree.nodes.size()); node-- > 1;) {
    auto& outer = below[tree.nodes[node].parent];
    if (const auto key = map.find(node); key != map.end()) add(outer, 1, key->second, true);
    const auto& inner = below[node];
    if (inner.count > 0) add(outer, inner.count, *inner.place, inner.is_uniform);
  }
  DeviceMap cleaned;
  for (std::uint32_t node = 0; node < tree.nodes.size();) {
    const auto key = map.find(node);
    if (below[node].count > 1 && below[node].is_uniform) {
      cleaned.emplace(node, *below[node].place);
      node = tree.nodes[node].end;
    } else if (key != map.end()) {
      cleaned.insert(*key);
      node = tree.nodes[node].end;
    } else {
      ++node;
    }
  }
  return cleaned;
}

std::vector<std::optional<Place>> tensor_places(const ModuleTree& tree, const DeviceMap& map) {
  std::vector<std::optional<Place>> places(tree.nodes.size());
  for (const auto& [key, place] : map) {
    for (auto node = key; node < tree.nodes[key].end; ++node) {
      if (!tree.is_module(node)) places[node] = place;
    }
  }
  return places;
}

bool is_whole(const ModuleTree& tree, const DeviceMap& map) {
  const auto places = tensor_places(tree, map);
  for (std::uint32_t node = 0; node < tree.nodes.size(); ++node) {
    if (!tree.is_module(node) && !places[node]) return false;
  }
  return std::all_of(tree.ties.begin(), tree.ties.end(), [&](const auto& group) {
    return std::all_of(group.begin(), group.end(), [&](std::uint32_t member) {
      return places[member] == places[group.front()];
    });
  });
}

bool buffers_fit_nowhere(const PlaceBudgets& budgets, const std::vector<std::int64_t>& used_bits,
                         std::int64_t offloaded_buffer_bits) {
  if (offloaded_buffer_bits <= 0) return false;
  bool has_accelerator = false;
  for (std::size_t i = 0; i < budgets.size(); ++i) {
    if (!budgets[i].place.is_accelerator()) continue;
    has_accelerator = true;
    if (budgets[i].bits >= offloaded_buffer_bits + used_bits[i]) return false;
  }
  return has_accelerator;
}

Result<DeviceMap> checked_device_map(
    const ModuleTree& tree, const std::vector<std::pair<std::string, Place>>& named_places) {
  DeviceMap map;
  for (const auto& [name, place] : named_places) {
    const auto node = tree.find(name);
    if (!node) return unknown_name(tree, name);
    if (!map.emplace(*node, place).second) {
      return invalid_error(fmt::format("the device map has a name twice: '{}'", name));
    }
  }
  std::uint32_t covered_end = 0;
  std::uint32_t covering = 0;
  for (const auto& [node, place] : map) {
    if (node < covered_end) {
      return invalid_error(fmt::format("the device map places '{}' and, below it, '{}'",
                                       tree.nodes[covering].name, tree.nodes[node].name));
    }
    covered_end = tree.nodes[node].end;
    covering = node;
  }
  MUSTER_TRY(check_coverage(tree, map));
  return map;
}

}  // namespace muster

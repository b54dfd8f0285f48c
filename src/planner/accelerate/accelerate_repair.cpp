// The same greedy walk as accelerate's with its faults mended. The list of work always covers all
// tensors that have no place yet, so none can be forgotten, and ties are placed as one group, so
// none can be torn apart. It ends because each turn places a group, splits a module or moves to a
// later accelerator. Up to three walks are made, each with more room reserved, as whether a reserve
// is needed is known only afterwards.

#include "planner/accelerate/accelerate_repair.h"

#include <algorithm>
#include <limits>

namespace muster {
namespace {

using Nodes = std::vector<std::uint32_t>;

/// Which places keep room for the largest layer that has been offloaded and comes back to compute.
struct Reserve {
  bool on_accelerator = false;  // for layers of the host or the disk
  bool on_host = false;         // for layers of the disk
};

std::int64_t largest_layer_bits(const SizedTree& model) {
  std::int64_t largest = 0;
  for (std::uint32_t node = 1; node < model.tree.nodes.size();) {
    const bool is_layer = model.is_layer(node);
    if (is_layer) largest = std::max(largest, model.bits[node]);
    node = is_layer ? model.tree.nodes[node].end : node + 1;
  }
  return largest;
}

class RepairedLoop {
 public:
  RepairedLoop(const SizedTree& model, const PlaceBudgets& budgets, const PlacementOptions& options,
               Reserve reserve);

  void run();
  bool uses(PlaceKind kind) const;
  ModulePlacement placement(const PlaceBudgets& budgets) const;

 private:
  Nodes group_of(std::uint32_t node) const;
  std::uint32_t waiting_owner(std::uint32_t parameter) const;
  std::int64_t group_bits(const Nodes& group) const;
  bool fits(std::size_t device, std::int64_t bits) const { return bits <= free_[device]; }
  void place(const Nodes& group, std::size_t device);
  bool split_one(const Nodes& group);
  bool place_any_other(const Nodes& group);
  std::optional<std::size_t> next_accelerator(std::int64_t bits) const;
  void treat(std::uint32_t node);

  const SizedTree& model_;
  const ModuleTree& tree_;
  const PlacementOptions& options_;
  PlaceBudgets places_;             // the disk at the end, without a limit
  std::vector<std::int64_t> free_;  // [places]
  std::vector<std::int64_t> used_;  // [places]
  std::size_t device_ = 0;
  Nodes work_;  // its front at the back
  std::vector<bool> is_waiting_;
  DeviceMap map_;
};

RepairedLoop::RepairedLoop(const SizedTree& model, const PlaceBudgets& budgets,
                           const PlacementOptions& options, Reserve reserve)
    : model_(model), tree_(model.tree), options_(options), places_(budgets) {
  if (places_.empty() || places_.back().place.kind != PlaceKind::Disk) {
    places_.push_back({Place{PlaceKind::Disk, 0}, 0});
  }
  const std::int64_t room = largest_layer_bits(model);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const auto& place = places_[i].place;
    const bool keeps_room =
        place.is_accelerator() ? reserve.on_accelerator && i == 0 : reserve.on_host;
    free_.push_back(place.kind == PlaceKind::Disk
                        ? std::numeric_limits<std::int64_t>::max()
                        : std::max<std::int64_t>(0, places_[i].bits - (keeps_room ? room : 0)));
  }
  used_.assign(places_.size(), 0);
  is_waiting_.assign(tree_.nodes.size(), false);
  work_ = tree_.children(0);
  for (const auto node : work_) is_waiting_[node] = true;
  std::reverse(work_.begin(), work_.end());
}

/// The node in the list that is or holds `parameter`. Ties go together, so one waits as long as
/// any of its group does.
std::uint32_t RepairedLoop::waiting_owner(std::uint32_t parameter) const {
  auto node = parameter;
  while (!is_waiting_[node] && node != 0) node = tree_.nodes[node].parent;
  return node;
}

/// `node` and all that ties bind to it, over any number of ties. accelerate looks one tie far, at
/// names that merely contain the module's, and never at a parameter that waits by itself: an
/// IndexError (huggingface/accelerate issues 1510, 1548, 3308; huggingface/transformers 46566).
Nodes RepairedLoop::group_of(std::uint32_t node) const {
  Nodes group = {node};
  for (std::size_t i = 0; i < group.size(); ++i) {
    for (const auto& tie : tree_.ties) {
      const bool is_inside = std::any_of(tie.begin(), tie.end(), [&](std::uint32_t member) {
        return tree_.contains(group[i], member);
      });
      if (!is_inside) continue;
      for (const auto member : tie) {
        const bool is_known = std::any_of(group.begin(), group.end(), [&](std::uint32_t known) {
          return tree_.contains(known, member);
        });
        if (!is_known) group.push_back(waiting_owner(member));
      }
    }
  }
  return group;
}

std::int64_t RepairedLoop::group_bits(const Nodes& group) const {
  std::int64_t bits = 0;
  for (const auto node : group) bits += model_.bits[node];
  return bits;
}

void RepairedLoop::place(const Nodes& group, std::size_t device) {
  const auto bits = group_bits(group);
  used_[device] += bits;
  free_[device] -= bits;
  for (const auto node : group) {
    map_[node] = places_[device].place;
    is_waiting_[node] = false;
  }
  if (group.size() == 1 && work_.back() == group.front()) {
    work_.pop_back();
    return;
  }
  work_.erase(std::remove_if(work_.begin(), work_.end(),
                             [&](std::uint32_t node) { return !is_waiting_[node]; }),
              work_.end());
}

/// Splits what is tied before the module itself when that alone would fit. All that the module
/// holds goes on waiting; accelerate drops its buffers (huggingface/accelerate issues 3956, 4014).
bool RepairedLoop::split_one(const Nodes& group) {
  Nodes order = group;
  if (fits(device_, model_.bits[group.front()]))
    std::rotate(order.begin(), order.begin() + 1, order.end());
  const auto found = std::find_if(order.begin(), order.end(),
                                  [&](std::uint32_t node) { return !model_.is_layer(node); });
  if (found == order.end()) return false;
  const auto parts = tree_.children(*found);
  is_waiting_[*found] = false;
  for (const auto part : parts) is_waiting_[part] = true;
  work_.insert(work_.erase(std::find(work_.begin(), work_.end(), *found)), parts.rbegin(),
               parts.rend());
  return true;
}

/// fallback_allocation: the first other unit that fits on a device which would stay empty.
bool RepairedLoop::place_any_other(const Nodes& group) {
  if (!options_.fallback_allocation || used_[device_] > 0) return false;
  for (auto item = work_.rbegin(); item != work_.rend(); ++item) {
    if (std::find(group.begin(), group.end(), *item) != group.end()) continue;
    const auto other = group_of(*item);
    const auto bits = group_bits(other);
    if (bits == 0 || !fits(device_, bits)) continue;
    place(other, device_);
    return true;
  }
  return false;
}

std::optional<std::size_t> RepairedLoop::next_accelerator(std::int64_t bits) const {
  for (auto i = device_ + 1; i < places_.size(); ++i) {
    if (places_[i].place.is_accelerator() && fits(i, bits)) return i;
  }
  return std::nullopt;
}

void RepairedLoop::treat(std::uint32_t node) {
  const auto group = group_of(node);
  const auto bits = group_bits(group);
  if (fits(device_, bits)) return place(group, device_);
  if (split_one(group) || place_any_other(group)) return;
  if (const auto next = next_accelerator(bits)) {
    device_ = *next;
    return;
  }
  // It fits on no accelerator any more. accelerate would now offload all that follows, too
  // (huggingface/accelerate issue 3041); here it goes alone, and the accelerators stay in use.
  auto host = device_;
  while (places_[host].place.is_accelerator() || !fits(host, bits)) ++host;
  place(group, host);
}

void RepairedLoop::run() {
  while (!work_.empty()) treat(work_.back());
}

bool RepairedLoop::uses(PlaceKind kind) const {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].place.kind == kind && used_[i] > 0) return true;
  }
  return false;
}

ModulePlacement RepairedLoop::placement(const PlaceBudgets& budgets) const {
  ModulePlacement placement;
  placement.map = cleaned_device_map(tree_, map_);
  std::int64_t buffer_bits = 0;
  const auto places = tensor_places(tree_, map_);
  for (std::uint32_t node = 0; node < tree_.nodes.size(); ++node) {
    if (tree_.nodes[node].kind == ModuleNodeKind::Buffer && !places[node]->is_accelerator()) {
      buffer_bits += model_.bits[node];
    }
  }
  placement.has_buffer_warning =
      !options_.offload_buffers && buffers_fit_nowhere(budgets, used_, buffer_bits);
  return placement;
}

std::vector<std::int64_t> used_bits(const SizedTree& model, const PlaceBudgets& budgets,
                                    const std::vector<std::optional<Place>>& places) {
  std::vector<std::int64_t> used(budgets.size(), 0);
  for (std::uint32_t node = 0; node < places.size(); ++node) {
    for (std::size_t i = 0; places[node] && i < budgets.size(); ++i) {
      if (budgets[i].place == *places[node]) used[i] += model.bits[node];
    }
  }
  return used;
}

}  // namespace

/// Room for an offloaded layer is kept only where something is offloaded. accelerate keeps it
/// always, and so offloads what would have fitted (huggingface/accelerate issue 1888).
ModulePlacement place_repaired(const SizedTree& model, const PlaceBudgets& budgets,
                               const PlacementOptions& options) {
  RepairedLoop without(model, budgets, options, {});
  without.run();
  if (!without.uses(PlaceKind::Cpu) && !without.uses(PlaceKind::Disk)) {
    return without.placement(budgets);
  }
  RepairedLoop with_host(model, budgets, options, {.on_accelerator = true});
  with_host.run();
  if (!with_host.uses(PlaceKind::Disk)) return with_host.placement(budgets);
  RepairedLoop with_disk(model, budgets, options, {.on_accelerator = true, .on_host = true});
  with_disk.run();
  return with_disk.placement(budgets);
}

std::optional<DeviceMap> completed_device_map(const SizedTree& model, const PlaceBudgets& budgets,
                                              const DeviceMap& map) {
  const auto& tree = model.tree;
  auto places = tensor_places(tree, map);
  auto used = used_bits(model, budgets, places);
  DeviceMap completed = map;
  for (std::uint32_t node = 1; node < tree.nodes.size(); ++node) {
    if (tree.is_module(node) || places[node]) continue;
    if (tree.nodes[node].kind != ModuleNodeKind::Buffer) return std::nullopt;
    std::optional<Place> near;
    for (auto outer = node; !near && outer != 0;) {
      outer = tree.nodes[outer].parent;
      for (auto other = outer; !near && other < tree.nodes[outer].end; ++other)
        near = places[other];
    }
    const auto has_room = [&](std::size_t i) {
      return budgets[i].bits - used[i] >= model.bits[node];
    };
    Place place{PlaceKind::Disk, 0};
    for (std::size_t i = budgets.size(); i-- > 0;) {
      if (has_room(i)) place = budgets[i].place;
    }
    for (std::size_t i = 0; i < budgets.size(); ++i) {
      if (near && budgets[i].place == *near && has_room(i)) place = *near;
    }
    if (near && near->kind == PlaceKind::Disk) place = *near;
    places[node] = place;
    completed.emplace(node, place);
    for (std::size_t i = 0; i < budgets.size(); ++i) {
      if (budgets[i].place == place) used[i] += model.bits[node];
    }
  }
  for (std::size_t i = 0; i < budgets.size(); ++i) {
    if (budgets[i].place.kind != PlaceKind::Disk && used[i] > budgets[i].bits) return std::nullopt;
  }
  if (!is_whole(tree, completed)) return std::nullopt;
  return completed;
}

std::int64_t offloaded_bits(const SizedTree& model, const DeviceMap& map) {
  std::int64_t bits = 0;
  for (const auto& [node, place] : map) {
    if (!place.is_accelerator()) bits += model.bits[node];
  }
  return bits;
}

}  // namespace muster

// infer_auto_device_map once more, step by step, with its faults: the aim is the same map, not a
// better one. The comparisons (< here, >= there), the order in which ties are looked up and the
// moments at which the largest layer is found anew all decide single layers, so none of them may be
// tidied up. A bound on turns stands in for the cases in which accelerate itself would not end.

#include "planner/accelerate/accelerate_placer.h"

#include <algorithm>
#include <limits>

namespace muster {
namespace {

using Nodes = std::vector<std::uint32_t>;

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

/// A module with what is tied to it: the other parameters, and the waiting module of each.
struct Tied {
  Nodes parameters;
  Nodes modules;  // [parameters]; one may come twice
  std::int64_t bits = 0;
};

/// One run of infer_auto_device_map. The list of work is kept with its front at the back.
class AccelerateLoop {
 public:
  AccelerateLoop(const SizedTree& model, const PlaceBudgets& budgets,
                 const PlacementOptions& options);

  std::optional<ModulePlacement> run();

 private:
  enum class Step { Again, NextDevice, Fault };

  Nodes split_parts(std::uint32_t node) const;
  void find_largest_layer(bool with_tensors);
  Nodes tied_parameters(std::uint32_t node) const;
  std::optional<Tied> with_ties(std::uint32_t node, const Nodes& waiting) const;
  Step treat(std::uint32_t node);
  void place(std::uint32_t node, const Tied& tied);
  bool split_tied(std::uint32_t node, const Tied& tied);
  Step try_fallback(std::uint32_t node, std::int64_t tied_bits);
  std::optional<std::optional<std::uint32_t>> find_fallback(std::int64_t limit) const;
  void bring_out(std::uint32_t node);
  std::int64_t budget() const { return budgets_[device_].bits; }
  bool is_disk() const { return budgets_[device_].place.kind == PlaceKind::Disk; }
  std::int64_t buffer_bits(std::uint32_t node) const;

  const SizedTree& model_;
  const ModuleTree& tree_;
  PlaceBudgets budgets_;  // the disk at the end
  const PlacementOptions& options_;
  Nodes work_;
  std::size_t device_ = 0;
  std::vector<std::int64_t> used_;  // [budgets]
  std::vector<bool> is_main_;       // [budgets]: keeps room for an offloaded layer
  std::int64_t layer_bits_ = 0;     // the largest layer that waits
  Nodes layers_;                    // those of that size
  std::int64_t offloaded_buffers_ = 0;
  DeviceMap map_;
};

AccelerateLoop::AccelerateLoop(const SizedTree& model, const PlaceBudgets& budgets,
                               const PlacementOptions& options)
    : model_(model), tree_(model.tree), budgets_(budgets), options_(options) {
  if (budgets_.empty() || budgets_.back().place.kind != PlaceKind::Disk) {
    budgets_.push_back({Place{PlaceKind::Disk, 0}, kNoLimit});
  }
  used_.assign(budgets_.size(), 0);
  is_main_.assign(budgets_.size(), false);
  const bool has_mps = std::any_of(budgets_.begin(), budgets_.end(), [](const PlaceBudget& budget) {
    return budget.place.kind == PlaceKind::Mps;
  });
  for (std::size_t i = 0; i < budgets_.size(); ++i) {
    const auto kind = budgets_[i].place.kind;
    is_main_[i] = has_mps ? kind == PlaceKind::Mps
                          : kind == PlaceKind::Cpu || (i == 0 && kind == PlaceKind::Gpu);
  }
  work_ = tree_.children(0);
  std::reverse(work_.begin(), work_.end());
}

/// What a split leaves in the list: no buffers (huggingface/accelerate issues 3956 and 4014).
Nodes AccelerateLoop::split_parts(std::uint32_t node) const {
  auto parts = tree_.children(node);
  parts.erase(std::remove_if(parts.begin(), parts.end(),
                             [&](std::uint32_t part) {
                               return tree_.nodes[part].kind == ModuleNodeKind::Buffer;
                             }),
              parts.end());
  return parts;
}

void AccelerateLoop::find_largest_layer(bool with_tensors) {
  layer_bits_ = 0;
  layers_.clear();
  for (auto item = work_.rbegin(); item != work_.rend(); ++item) {
    if (!with_tensors && !tree_.is_module(*item)) continue;
    for (auto node = *item; node < tree_.nodes[*item].end;) {
      const bool is_layer = (node == *item || tree_.is_module(node)) && model_.is_layer(node);
      if (is_layer && model_.bits[node] >= layer_bits_) {
        if (model_.bits[node] > layer_bits_) layers_.clear();
        layer_bits_ = model_.bits[node];
        layers_.push_back(node);
      }
      node = is_layer ? tree_.nodes[node].end : node + 1;
    }
  }
}

/// Parameters tied to one inside `node` and not inside it themselves. "Inside" is accelerate's: the
/// name followed by a dot occurs anywhere in the parameter's name.
Nodes AccelerateLoop::tied_parameters(std::uint32_t node) const {
  Nodes tied;
  if (tree_.ties.empty()) return tied;
  const auto inside = tree_.nodes[node].name + ".";
  for (const auto& group : tree_.ties) {
    Nodes outside;
    for (const auto member : group) {
      const auto name = tree_.nodes[member].name + ".";
      if (name.find(inside) == std::string::npos) outside.push_back(member);
    }
    if (outside.size() < group.size()) tied.insert(tied.end(), outside.begin(), outside.end());
  }
  return tied;
}

/// nullopt: no module in `waiting` holds a tied parameter; that is accelerate's IndexError
/// (huggingface/transformers issue 46566). A parameter that waits by itself is not found either.
std::optional<Tied> AccelerateLoop::with_ties(std::uint32_t node, const Nodes& waiting) const {
  Tied tied;
  tied.parameters = tied_parameters(node);
  tied.bits = model_.bits[node];
  for (const auto parameter : tied.parameters) {
    const auto owner = std::find_if(waiting.begin(), waiting.end(), [&](std::uint32_t item) {
      return item != parameter && tree_.contains(item, parameter);
    });
    if (owner == waiting.end()) return std::nullopt;
    tied.modules.push_back(*owner);
    tied.bits += model_.bits[*owner] - model_.bits[parameter];
  }
  return tied;
}

std::int64_t AccelerateLoop::buffer_bits(std::uint32_t node) const {
  std::int64_t bits = 0;
  for (auto below = node; below < tree_.nodes[node].end; ++below) {
    if (tree_.nodes[below].kind == ModuleNodeKind::Buffer) bits += model_.bits[below];
  }
  return bits;
}

void AccelerateLoop::place(std::uint32_t node, const Tied& tied) {
  used_[device_] += tied.bits;
  map_[node] = budgets_[device_].place;
  for (const auto module : tied.modules) {
    map_[module] = budgets_[device_].place;
    work_.erase(std::remove(work_.begin(), work_.end(), module), work_.end());
  }
  if (!budgets_[device_].place.is_accelerator() && tree_.is_module(node)) {
    offloaded_buffers_ += buffer_bits(node);
  }
}

/// Splits the first tied module that can be split, so that less has to come along.
bool AccelerateLoop::split_tied(std::uint32_t node, const Tied& tied) {
  for (const auto module : tied.modules) {
    if (model_.is_layer(module)) continue;
    const auto parts = split_parts(module);
    const auto at = work_.erase(std::find(work_.begin(), work_.end(), module));
    work_.insert(at, parts.rbegin(), parts.rend());
    work_.push_back(node);
    find_largest_layer(false);
    return true;
  }
  return false;
}

/// Breadth-first search for a waiting module of at most `limit` bits. Outer nullopt: IndexError.
std::optional<std::optional<std::uint32_t>> AccelerateLoop::find_fallback(
    std::int64_t limit) const {
  if (limit < 0) return std::optional<std::uint32_t>();
  Nodes waiting(work_.rbegin(), work_.rend());
  while (!waiting.empty()) {
    const auto node = waiting.front();
    waiting.erase(waiting.begin());
    const auto tied = with_ties(node, waiting);
    if (!tied) return std::nullopt;
    if (tied->bits <= limit) return std::optional<std::uint32_t>(node);
    if (model_.is_layer(node)) continue;
    const auto parts = split_parts(node);
    waiting.insert(waiting.begin(), parts.begin(), parts.end());
  }
  return std::optional<std::uint32_t>();
}

/// Splits waiting modules until `node` itself waits, and takes it out of the list.
void AccelerateLoop::bring_out(std::uint32_t node) {
  while (true) {
    const auto owner = std::find_if(work_.begin(), work_.end(),
                                    [&](std::uint32_t item) { return tree_.contains(item, node); });
    if (*owner == node) {
      work_.erase(owner);
      return;
    }
    const auto parts = split_parts(*owner);
    work_.insert(work_.erase(owner), parts.rbegin(), parts.rend());
  }
}

AccelerateLoop::Step AccelerateLoop::try_fallback(std::uint32_t node, std::int64_t tied_bits) {
  const auto found = find_fallback(budget() - std::max(layer_bits_, tied_bits));
  if (!found) return Step::Fault;
  if (!*found) return Step::NextDevice;
  bring_out(**found);
  work_.push_back(node);
  work_.push_back(**found);
  return Step::Again;
}

// The order of these attempts is accelerate's: place the module with its ties, split what is tied,
// split the module, fall back to a smaller one, move on to the next device.
AccelerateLoop::Step AccelerateLoop::treat(std::uint32_t node) {
  const std::int64_t bits = model_.bits[node];
  const std::int64_t limit = budget() - (is_main_[device_] ? layer_bits_ : 0);
  const auto tied = with_ties(node, work_);
  if (!tied) return Step::Fault;
  if (is_disk() || used_[device_] + tied->bits <= limit) {
    place(node, *tied);
    return Step::Again;
  }
  if (!tied->parameters.empty() && used_[device_] + bits <= limit && split_tied(node, *tied)) {
    return Step::Again;
  }
  if (used_[device_] + bits >= limit && !model_.is_layer(node)) {
    const auto parts = split_parts(node);
    work_.insert(work_.end(), parts.rbegin(), parts.rend());
    find_largest_layer(false);
    return Step::Again;
  }
  if (used_[device_] == 0 && options_.fallback_allocation) {
    const auto step = try_fallback(node, tied->bits);
    if (step != Step::NextDevice) return step;
  }
  work_.push_back(node);
  return Step::NextDevice;
}

std::optional<ModulePlacement> AccelerateLoop::run() {
  find_largest_layer(true);
  // Each turn places, splits, moves on or tries a fallback; more turns than this and it would not
  // end.
  std::size_t turns = 8 * (tree_.nodes.size() + 1) * (budgets_.size() + 1);
  while (!work_.empty()) {
    if (turns-- == 0) return std::nullopt;
    const auto node = work_.back();
    work_.pop_back();
    layers_.erase(std::remove_if(layers_.begin(), layers_.end(),
                                 [&](std::uint32_t layer) { return tree_.contains(node, layer); }),
                  layers_.end());
    if (layers_.empty()) find_largest_layer(false);
    switch (treat(node)) {
      case Step::Again:
        break;
      case Step::NextDevice:
        if (is_main_[device_]) used_[device_] += layer_bits_;
        ++device_;
        break;
      case Step::Fault:
        return std::nullopt;
    }
  }
  ModulePlacement placement;
  placement.map = cleaned_device_map(tree_, map_);
  placement.has_buffer_warning =
      !options_.offload_buffers && buffers_fit_nowhere(budgets_, used_, offloaded_buffers_);
  return placement;
}

}  // namespace

std::optional<ModulePlacement> place_as_accelerate(const SizedTree& model,
                                                   const PlaceBudgets& budgets,
                                                   const PlacementOptions& options) {
  return AccelerateLoop(model, budgets, options).run();
}

}  // namespace muster

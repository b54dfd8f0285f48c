// A degree is legal when it divides every layer, and possible when the machine has a group for it;
// messages name the possible ones, as those are what a user can ask for instead. Groups are made
// within a node from devices of one class, and never of MIG slices, which cannot work on one layer
// together. Nodes with the same links and devices are divided once and the result is moved to the
// others.

#include "planner/parallel/parallel_degree.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

namespace muster {
namespace {

// What a degree fails to divide; nullopt where it is legal.
std::optional<std::string> undivided(const ModelShape& shape, std::uint32_t degree) {
  for (const auto& layer : shape.layers) {
    if (layer.head_count % degree != 0) {
      return fmt::format("the {} attention heads", layer.head_count);
    }
    const auto kv_heads = layer.kv_head_count;
    const bool is_shared = layer.attention == AttentionKind::Latent || kv_heads == 0;
    if (!is_shared && kv_heads % degree != 0 && degree % kv_heads != 0) {
      return fmt::format("the {} KV heads, nor is a multiple of them", kv_heads);
    }
    if (layer.intermediate_size % degree != 0) {
      return fmt::format("the feed-forward width {}", layer.intermediate_size);
    }
  }
  return std::nullopt;
}

// Devices that may be in one group: of a node and a class, no slices.
using Pool = std::pair<std::uint32_t, std::uint32_t>;  // node, class
std::map<Pool, DeviceGroup> pools_of(const Machine& machine,
                                     std::span<const std::uint32_t> devices) {
  std::map<Pool, DeviceGroup> pools;
  for (const auto device : devices) {
    const auto& one = machine.devices[device];
    if (one.parent) continue;
    pools[{one.node, one.device_class}].push_back(device - machine.nodes[one.node].first_device);
  }
  return pools;
}

const NodeLinks& links_of(const Machine& machine, std::uint32_t node) {
  return machine.node_links[machine.nodes[node].links];
}

// The most equal devices that may make one group.
std::uint32_t largest_group(const Machine& machine, std::span<const std::uint32_t> devices) {
  std::size_t largest = devices.empty() ? 0 : 1;
  std::map<std::pair<std::uint32_t, DeviceGroup>, std::size_t> known;  // by links and local devices
  for (const auto& [pool, local] : pools_of(machine, devices)) {
    const auto [entry, is_new] = known.try_emplace({machine.nodes[pool.first].links, local}, 0);
    if (is_new) {
      for (const auto& island : islands(links_of(machine, pool.first), local)) {
        entry->second = std::max(entry->second, island.size());
      }
    }
    largest = std::max(largest, entry->second);
  }
  return static_cast<std::uint32_t>(largest);
}

std::string listed(const std::vector<std::uint32_t>& degrees) {
  return fmt::format("{}", fmt::join(degrees, ", "));
}

}  // namespace

std::vector<std::uint32_t> legal_tensor_degrees(const ModelShape& shape, std::uint32_t most) {
  std::vector<std::uint32_t> degrees{1};
  if (shape.kind == ModelKind::Encoder) return degrees;
  for (std::uint32_t degree = 2; degree <= most; ++degree) {
    if (!undivided(shape, degree)) degrees.push_back(degree);
  }
  return degrees;
}

std::uint64_t padded_vocab(std::uint64_t vocab_size, std::uint32_t degree) {
  constexpr std::uint64_t kPadding = 64;
  const auto multiple = std::lcm(kPadding, std::uint64_t{degree});
  return (vocab_size + multiple - 1) / multiple * multiple;
}

std::vector<DeviceGroup> tensor_groups(const Machine& machine,
                                       std::span<const std::uint32_t> devices,
                                       std::uint32_t degree) {
  std::vector<DeviceGroup> groups;
  if (degree == 1) {
    for (const auto device : devices) groups.push_back({device});
    return groups;
  }
  // Nodes of one kind are divided alike: worked out once.
  std::map<std::pair<std::uint32_t, DeviceGroup>, std::vector<DeviceGroup>> known;
  for (const auto& [pool, local] : pools_of(machine, devices)) {
    const auto& node = machine.nodes[pool.first];
    const auto [entry, is_new] = known.try_emplace({node.links, local});
    if (is_new) entry->second = best_groups(machine.node_links[node.links], local, degree);
    for (auto group : entry->second) {
      for (auto& device : group) device += node.first_device;
      groups.push_back(std::move(group));
    }
  }
  std::sort(groups.begin(), groups.end());
  return groups;
}

std::vector<std::uint32_t> possible_tensor_degrees(const ModelShape& shape, const Machine& machine,
                                                   std::span<const std::uint32_t> devices) {
  return legal_tensor_degrees(shape, largest_group(machine, devices));
}

Status check_tensor_degree(const ModelShape& shape, const Machine& machine,
                           std::span<const std::uint32_t> devices, std::uint32_t degree) {
  const auto bad = [&](std::string_view what) {
    const auto possible = possible_tensor_degrees(shape, machine, devices);
    return Error{ErrorKind::InvalidArgument, fmt::format("{}: {} {}", what, listed(possible),
                                                         possible.size() == 1 ? "does" : "do")};
  };
  if (degree == 0) return bad("0 divides nothing");
  if (degree == 1) return Done{};
  if (shape.kind == ModelKind::Encoder) return bad("encoders are copied to devices, not cut");
  if (const auto what = undivided(shape, degree)) {
    return bad(fmt::format("{} does not divide {}", degree, *what));
  }
  const auto slice = std::find_if(devices.begin(), devices.end(), [&](std::uint32_t device) {
    return machine.devices[device].parent.has_value();
  });
  const auto largest = largest_group(machine, devices);
  if (degree <= largest) return Done{};
  if (slice != devices.end()) {
    return bad(fmt::format("slices of GPUs cannot work on one layer together, and {} is one",
                           machine.devices[*slice].name()));
  }
  return bad(
      fmt::format("{} does not fit into a node or island, of which the largest has {} equal {}",
                  degree, largest, largest == 1 ? "device" : "devices"));
}

}  // namespace muster

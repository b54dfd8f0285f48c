#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "spec/machine.h"
#include "topology/node_topology.h"

namespace muster {

/// What two groups exchange a second, rank to rank: the least over the ranks; groups of different
/// sizes talk through their first devices. nullopt where it is not known.
std::optional<double> bytes_per_second_between(const Machine& machine, const DeviceGroup& a,
                                               const DeviceGroup& b);

/// The order in which a pipeline should visit the groups: indices into `groups`.
///
/// Node after node, as all nodes are equally far from each other. Within a node along the path
/// whose slowest link is fastest, and of those the one with the least sum of times; of equal ones
/// the first in order of index. Exact up to 16 groups in a node, beyond by the nearest next and
/// exchanges of two (2-opt). A link that is not known counts as the slowest.
///
/// Cost: a node of k <= 16 groups 2^k k^2, once for nodes that are alike.
std::vector<std::uint32_t> pipeline_order(const Machine& machine,
                                          std::span<const DeviceGroup> groups);

/// The least that neighbours of this order exchange a second; nullopt where one is not known, or
/// for fewer than two groups.
std::optional<double> slowest_hop(const Machine& machine, std::span<const DeviceGroup> groups,
                                  std::span<const std::uint32_t> order);

}  // namespace muster

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "spec/machine.h"

namespace muster {

/// Devices by their index: within a node for NodeLinks, over the machine for Machine.
using DeviceGroup = std::vector<std::uint32_t>;

/// What two devices exchange a second, in one direction: over their link, or the network between
/// nodes. nullopt where it is not known, or for slices of GPUs, which have no way to each other but
/// host memory.
std::optional<double> bytes_per_second_between(const Machine& machine, std::uint32_t a,
                                               std::uint32_t b);

/// The least that any two of a group exchange; infinite for a group of one.
double group_bytes_per_second(const NodeLinks& links, std::span<const std::uint32_t> group);

/// Devices that NVLink or Infinity Fabric holds together, directly or over others of them; those
/// without such a link make one island of their own. In rising order.
std::vector<DeviceGroup> islands(const NodeLinks& links, std::span<const std::uint32_t> devices);

/// As many groups of `size` as there can be, each within an island, so that the slowest group is
/// fastest, then that all of them together are; of equal ways the first in order of index.
///
/// Exact up to 16 devices of an island, and where all its links are alike. Beyond, the best group
/// is taken again and again. Cost: at most 2^n C(n, size - 1) for n <= 16, else O(n^2 size).
std::vector<DeviceGroup> best_groups(const NodeLinks& links, std::span<const std::uint32_t> devices,
                                     std::uint32_t size);

/// `count` of the devices that are free, best linked to each other; of equal ways the one that
/// takes the least from those that stay, so that linked pairs stay whole for the next who asks.
/// Empty when there are not as many. Exact up to 16 free devices; beyond, the first ones of the
/// island that fits best.
DeviceGroup pick_devices(const NodeLinks& links, std::span<const std::uint32_t> free,
                         std::uint32_t count);

}  // namespace muster

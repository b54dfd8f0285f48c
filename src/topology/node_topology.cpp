// Answers questions about groups of devices: which are joined by fast links, which groups of a size
// exchange data fastest. A group is as fast as its slowest pair, so a division is judged by its
// slowest group first. Islands of up to 16 devices are searched completely, by a table over
// subsets; in larger ones a group is a device and its nearest neighbours, because the number of
// groups grows beyond all bounds. Where all links are equal any division is best, and runs are
// taken.

#include "topology/node_topology.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "base/check.h"

namespace muster {
namespace {

// Beyond, a table over all subsets is too large.
constexpr std::size_t kExactDevicesMax = 16;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

bool is_fabric(const Link& link) {
  return link.kind == LinkKind::NvLink || link.kind == LinkKind::Xgmi;
}

// Boards with a switch have equal links throughout, and then a search would only find runs.
bool has_equal_links(const NodeLinks& links, std::span<const std::uint32_t> devices) {
  if (devices.size() < 2) return true;
  const double first = links.between(devices[0], devices[1]).bytes_per_second;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (links.between(devices[i], devices[j]).bytes_per_second != first) return false;
    }
  }
  return true;
}

// What is over at the end is in no group.
std::vector<DeviceGroup> in_runs(std::span<const std::uint32_t> devices, std::uint32_t size) {
  std::vector<DeviceGroup> groups;
  for (std::size_t i = 0; i + size <= devices.size(); i += size) {
    groups.emplace_back(devices.begin() + static_cast<std::ptrdiff_t>(i),
                        devices.begin() + static_cast<std::ptrdiff_t>(i + size));
  }
  return groups;
}

DeviceGroup members(std::span<const std::uint32_t> devices, std::uint32_t mask) {
  DeviceGroup group;
  for (std::uint32_t bit = 0; bit < devices.size(); ++bit) {
    if ((mask >> bit & 1U) != 0) group.push_back(devices[bit]);
  }
  return group;
}

/// How good a division is: the slowest group, then the sum of all.
struct Worth {
  double slowest = kInfinite;
  double sum = 0.0;

  bool operator<(const Worth& other) const {
    return slowest != other.slowest ? slowest < other.slowest : sum < other.sum;
  }
};

// best[mask]: the worth of the best division of `mask`, which may leave devices out at the end. The
// first device of a mask is in the first group, or left out, so each division is met once.
class Partition {
 public:
  Partition(const NodeLinks& links, std::span<const std::uint32_t> devices, std::uint32_t size)
      : devices_(devices), size_(size) {
    const std::size_t masks = std::size_t{1} << devices.size();
    speed_.assign(masks, -1.0);
    worth_.assign(masks, std::nullopt);
    for (std::uint32_t mask = 1; mask < masks; ++mask) {
      if (std::popcount(mask) == static_cast<int>(size)) {
        speed_[mask] = group_bytes_per_second(links, members(devices, mask));
        candidates_.push_back(mask);
      }
    }
  }

  std::vector<DeviceGroup> best() {
    auto mask = static_cast<std::uint32_t>((std::size_t{1} << devices_.size()) - 1);
    std::vector<DeviceGroup> groups;
    while (static_cast<std::uint32_t>(std::popcount(mask)) >= size_) {
      const auto group = first_group(mask);
      if (group != 0) groups.push_back(members(devices_, group));
      mask &= group != 0 ? ~group : mask - 1;
    }
    return groups;
  }

 private:
  bool may_skip(std::uint32_t mask) const {
    return static_cast<std::uint32_t>(std::popcount(mask)) % size_ != 0;
  }

  Worth with(std::uint32_t group, std::uint32_t rest) {
    const auto other = worth(rest);
    return {std::min(speed_[group], other.slowest), speed_[group] + other.sum};
  }

  Worth worth(std::uint32_t mask) {
    if (static_cast<std::uint32_t>(std::popcount(mask)) < size_) return {};
    if (worth_[mask]) return *worth_[mask];
    const auto group = first_group(mask);
    const auto found = group != 0 ? with(group, mask & ~group) : worth(mask & (mask - 1));
    worth_[mask] = found;
    return found;
  }

  // The best group with the first device of `mask`; 0 when it is better left out.
  std::uint32_t first_group(std::uint32_t mask) {
    const auto first = mask & (~mask + 1);
    std::uint32_t best = 0;
    std::optional<Worth> best_worth;
    for (const auto group : candidates_) {
      if ((group & first) == 0 || (group & ~mask) != 0) continue;
      const auto found = with(group, mask & ~group);
      if (best_worth && !(*best_worth < found)) continue;
      best_worth = found;
      best = group;
    }
    if (may_skip(mask) && *best_worth < worth(mask & ~first)) best = 0;
    return best;
  }

  std::span<const std::uint32_t> devices_;
  std::uint32_t size_;
  std::vector<double> speed_;  // [masks] of a group; -1: not of the size
  std::vector<std::optional<Worth>> worth_;
  std::vector<std::uint32_t> candidates_;  // rising: of equal groups the first devices
};

// The best group around each device: it and the nearest to it.
std::vector<DeviceGroup> greedy_groups(const NodeLinks& links, std::vector<std::uint32_t> left,
                                       std::uint32_t size) {
  std::vector<DeviceGroup> groups;
  while (left.size() >= size) {
    const auto centre = left.front();
    std::stable_sort(left.begin() + 1, left.end(), [&](std::uint32_t a, std::uint32_t b) {
      return links.between(centre, a).bytes_per_second > links.between(centre, b).bytes_per_second;
    });
    groups.emplace_back(left.begin(), left.begin() + size);
    std::sort(groups.back().begin(), groups.back().end());
    left.erase(left.begin(), left.begin() + size);
    std::sort(left.begin(), left.end());
  }
  return groups;
}

// Bandwidth between the devices of `mask` and the others: what a pick would leave unused.
double cut_bytes_per_second(const NodeLinks& links, std::span<const std::uint32_t> devices,
                            std::uint32_t mask) {
  double sum = 0.0;
  for (std::uint32_t a = 0; a < devices.size(); ++a) {
    for (std::uint32_t b = 0; b < devices.size(); ++b) {
      if ((mask >> a & 1U) != 0 && (mask >> b & 1U) == 0) {
        sum += links.between(devices[a], devices[b]).bytes_per_second;
      }
    }
  }
  return sum;
}

}  // namespace

// Between nodes it is the network, whatever devices they are; slices of GPUs have no known link.
std::optional<double> bytes_per_second_between(const Machine& machine, std::uint32_t a,
                                               std::uint32_t b) {
  const auto& one = machine.devices[a];
  const auto& other = machine.devices[b];
  if (a == b) return kInfinite;
  if (one.node != other.node) return machine.network_bytes_per_second;
  if (one.parent || other.parent) return std::nullopt;
  const auto& node = machine.nodes[one.node];
  return machine.node_links[node.links]
      .between(a - node.first_device, b - node.first_device)
      .bytes_per_second;
}

// A collective runs at the pace of its slowest pair. Infinite for one device, which exchanges
// nothing.
double group_bytes_per_second(const NodeLinks& links, std::span<const std::uint32_t> group) {
  double least = kInfinite;
  for (std::size_t i = 0; i < group.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      least = std::min(least, links.between(group[i], group[j]).bytes_per_second);
    }
  }
  return least;
}

// Breadth-first over fabric links. Devices without any are not islands of their own: they are one
// group together, as PCIe reaches them all.
std::vector<DeviceGroup> islands(const NodeLinks& links, std::span<const std::uint32_t> devices) {
  std::vector<DeviceGroup> found;
  DeviceGroup alone;
  std::vector<bool> is_taken(devices.size());
  for (std::size_t start = 0; start < devices.size(); ++start) {
    if (is_taken[start]) continue;
    std::vector<std::size_t> island{start};
    is_taken[start] = true;
    for (std::size_t next = 0; next < island.size(); ++next) {
      for (std::size_t i = 0; i < devices.size(); ++i) {
        if (is_taken[i] || !is_fabric(links.between(devices[island[next]], devices[i]))) continue;
        is_taken[i] = true;
        island.push_back(i);
      }
    }
    if (island.size() == 1) {
      alone.push_back(devices[start]);
      continue;
    }
    std::sort(island.begin(), island.end());
    auto& group = found.emplace_back();
    for (const auto i : island) group.push_back(devices[i]);
  }
  if (!alone.empty()) found.push_back(std::move(alone));
  std::sort(found.begin(), found.end());
  return found;
}

// Three ways by what an island allows: runs where all links are equal, the full search where its
// table fits, nearest neighbours beyond. No group crosses islands.
std::vector<DeviceGroup> best_groups(const NodeLinks& links, std::span<const std::uint32_t> devices,
                                     std::uint32_t size) {
  MUSTER_CHECK(size > 0);
  if (size == 1) return in_runs(devices, 1);
  std::vector<DeviceGroup> groups;
  for (const auto& island : islands(links, devices)) {
    if (island.size() < size) continue;
    auto found = has_equal_links(links, island)      ? in_runs(island, size)
                 : island.size() <= kExactDevicesMax ? Partition(links, island, size).best()
                                                     : greedy_groups(links, island, size);
    groups.insert(groups.end(), found.begin(), found.end());
  }
  std::sort(groups.begin(), groups.end());
  return groups;
}

// Of equally fast picks the one that cuts off the least bandwidth wins, so that the devices that
// stay free remain well joined. With many devices it is the smallest island that is large enough.
DeviceGroup pick_devices(const NodeLinks& links, std::span<const std::uint32_t> free,
                         std::uint32_t count) {
  if (count == 0 || count > free.size()) return {};
  if (free.size() > kExactDevicesMax) {
    auto found = islands(links, free);
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.size() < b.size(); });
    for (const auto& island : found) {
      if (island.size() >= count) return {island.begin(), island.begin() + count};
    }
    return {free.begin(), free.begin() + count};
  }
  std::uint32_t best = 0;
  std::array<double, 2> best_worth{};
  for (std::uint32_t mask = 1; mask < std::uint32_t{1} << free.size(); ++mask) {
    if (std::popcount(mask) != static_cast<int>(count)) continue;
    const std::array worth{group_bytes_per_second(links, members(free, mask)),
                           -cut_bytes_per_second(links, free, mask)};
    if (best != 0 && worth <= best_worth) continue;
    best = mask;
    best_worth = worth;
  }
  return members(free, best);
}

}  // namespace muster

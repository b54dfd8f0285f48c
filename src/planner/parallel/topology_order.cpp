// A pipeline is as fast as its slowest hop, so the order of groups is a bottleneck path first and a
// shortest one second. Small nodes are solved exactly: bisection over the distinct link times, each
// probe a Held-Karp table over subsets, 2^k k entries. Ties go to the lower index, so the order is
// the same on every machine. Nodes with the same links and groups are solved once, which is what
// makes a thousand nodes cheap. Source: Held and Karp 1962.

#include "planner/parallel/topology_order.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

namespace muster {
namespace {

constexpr std::size_t kExactGroupsMax = 16;
constexpr double kInfinite = std::numeric_limits<double>::infinity();
// Sums of the same times in another order are the same sum.
constexpr double kRounding = 1e-12;
constexpr int kExchangeRoundsMax = 100;

/// Seconds a byte from group to group, [k * k]; the diagonal is not read.
class Times {
 public:
  Times(const Machine& machine, std::span<const DeviceGroup> groups)
      : count_(groups.size()), seconds_(groups.size() * groups.size(), 0.0) {
    for (std::size_t a = 0; a < count_; ++a) {
      for (std::size_t b = 0; b < count_; ++b) {
        if (a == b) continue;
        const auto bytes = bytes_per_second_between(machine, groups[a], groups[b]);
        seconds_[a * count_ + b] = bytes && *bytes > 0.0 ? 1.0 / *bytes : kInfinite;
      }
    }
    // Unknown: as slow as the slowest that is known.
    double slowest = 0.0;
    for (const auto seconds : seconds_) {
      if (seconds != kInfinite) slowest = std::max(slowest, seconds);
    }
    std::replace(seconds_.begin(), seconds_.end(), kInfinite, slowest);
  }

  std::size_t count() const { return count_; }
  double between(std::size_t a, std::size_t b) const { return seconds_[a * count_ + b]; }

  bool are_equal() const {
    for (std::size_t a = 0; a < count_; ++a) {
      for (std::size_t b = 0; b < count_; ++b) {
        if (a != b && between(a, b) != between(0, 1)) return false;
      }
    }
    return true;
  }

  std::set<double> distinct() const {
    std::set<double> found;
    for (std::size_t a = 0; a < count_; ++a) {
      for (std::size_t b = 0; b < a; ++b) found.insert(between(a, b));
    }
    return found;
  }

 private:
  std::size_t count_;
  std::vector<double> seconds_;
};

// Held and Karp's table over visited sets, with the links slower than a limit left out.
class ExactPath {
 public:
  explicit ExactPath(const Times& times) : times_(times), masks_(std::size_t{1} << times.count()) {}

  /// nullopt when no path keeps to the limit.
  std::optional<std::vector<std::uint32_t>> within(double limit) {
    const auto k = times_.count();
    rest_.assign(masks_ * k, kInfinite);
    for (std::size_t mask = masks_; mask-- > 1;) {
      for (std::size_t at = 0; at < k; ++at) {
        if ((mask >> at & 1U) != 0) rest_[mask * k + at] = best_rest(mask, at, limit);
      }
    }
    double best = kInfinite;
    for (std::size_t at = 0; at < k; ++at) best = std::min(best, rest(at, std::size_t{1} << at));
    if (best == kInfinite) return std::nullopt;
    return path(best, limit);
  }

 private:
  double rest(std::size_t at, std::size_t mask) const { return rest_[mask * times_.count() + at]; }

  double through(std::size_t mask, std::size_t at, std::size_t next, double limit) const {
    if ((mask >> next & 1U) != 0 || times_.between(at, next) > limit) return kInfinite;
    return times_.between(at, next) + rest(next, mask | std::size_t{1} << next);
  }

  double best_rest(std::size_t mask, std::size_t at, double limit) const {
    if (mask + 1 == masks_) return 0.0;
    double best = kInfinite;
    for (std::size_t next = 0; next < times_.count(); ++next) {
      best = std::min(best, through(mask, at, next, limit));
    }
    return best;
  }

  // From the front, always the first index that still reaches the best sum.
  std::vector<std::uint32_t> path(double best, double limit) const {
    const auto is_best = [](double value, double wanted) {
      return value <= wanted + kRounding * wanted;
    };
    std::size_t at = 0;
    while (!is_best(rest(at, std::size_t{1} << at), best)) ++at;
    std::vector<std::uint32_t> order{static_cast<std::uint32_t>(at)};
    for (auto mask = std::size_t{1} << at; mask + 1 != masks_;) {
      std::size_t next = 0;
      while (!is_best(through(mask, at, next, limit), rest(at, mask))) ++next;
      order.push_back(static_cast<std::uint32_t>(next));
      at = next;
      mask |= std::size_t{1} << at;
    }
    return order;
  }

  const Times& times_;
  std::size_t masks_;
  std::vector<double> rest_;  // [masks, k] the least time from a group on, given who was visited
};

std::vector<std::uint32_t> exact_path(const Times& times) {
  const auto limits = times.distinct();
  ExactPath search(times);
  // The least limit that some path keeps to: bisection, as a larger one allows no less.
  std::vector<double> values(limits.begin(), limits.end());
  std::size_t low = 0;
  for (std::size_t high = values.size() - 1; low < high;) {
    const auto middle = low + (high - low) / 2;
    if (search.within(values[middle])) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return *search.within(values[low]);
}

std::vector<std::uint32_t> nearest_path(const Times& times) {
  std::vector<std::uint32_t> order{0};
  std::vector<bool> is_visited(times.count());
  is_visited[0] = true;
  while (order.size() < times.count()) {
    std::optional<std::uint32_t> next;
    for (std::uint32_t i = 0; i < times.count(); ++i) {
      if (is_visited[i]) continue;
      if (!next || times.between(order.back(), i) < times.between(order.back(), *next)) next = i;
    }
    is_visited[*next] = true;
    order.push_back(*next);
  }
  return order;
}

// Turns a piece of the path round wherever that shortens it.
void exchange(const Times& times, std::vector<std::uint32_t>& order) {
  const auto hop = [&](std::size_t a, std::size_t b) {
    return a < order.size() && b < order.size() ? times.between(order[a], order[b]) : 0.0;
  };
  bool is_better = true;
  for (int round = 0; is_better && round < kExchangeRoundsMax; ++round) {
    is_better = false;
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
      for (std::size_t j = i + 1; j < order.size(); ++j) {
        const double now = (i > 0 ? hop(i - 1, i) : 0.0) + hop(j, j + 1);
        const double then = (i > 0 ? hop(i - 1, j) : 0.0) + hop(i, j + 1);
        if (then >= now * (1.0 - kRounding)) continue;
        std::reverse(order.begin() + static_cast<std::ptrdiff_t>(i),
                     order.begin() + static_cast<std::ptrdiff_t>(j) + 1);
        is_better = true;
      }
    }
  }
}

std::vector<std::uint32_t> order_in_node(const Machine& machine,
                                         std::span<const DeviceGroup> groups) {
  std::vector<std::uint32_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0U);
  if (groups.size() < 3) return order;
  const Times times(machine, groups);
  if (times.are_equal()) return order;
  if (groups.size() <= kExactGroupsMax) return exact_path(times);
  order = nearest_path(times);
  exchange(times, order);
  return order;
}

}  // namespace

std::optional<double> bytes_per_second_between(const Machine& machine, const DeviceGroup& a,
                                               const DeviceGroup& b) {
  const auto ranks = a.size() == b.size() ? a.size() : std::size_t{1};
  double least = kInfinite;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto bytes = bytes_per_second_between(machine, a[rank], b[rank]);
    if (!bytes) return std::nullopt;
    least = std::min(least, *bytes);
  }
  return least;
}

std::vector<std::uint32_t> pipeline_order(const Machine& machine,
                                          std::span<const DeviceGroup> groups) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_node;
  for (std::uint32_t i = 0; i < groups.size(); ++i) {
    by_node[machine.devices[groups[i].front()].node].push_back(i);
  }
  // Nodes with the same links and the same groups have the same path.
  std::map<std::pair<std::uint32_t, std::vector<DeviceGroup>>, std::vector<std::uint32_t>> known;
  std::vector<std::uint32_t> order;
  for (const auto& [node, members] : by_node) {
    std::vector<DeviceGroup> local;
    std::vector<DeviceGroup> own;
    for (const auto i : members) {
      own.push_back(groups[i]);
      local.push_back(groups[i]);
      for (auto& device : local.back()) device -= machine.nodes[node].first_device;
    }
    const auto [entry, is_new] = known.try_emplace({machine.nodes[node].links, std::move(local)});
    if (is_new) entry->second = order_in_node(machine, own);
    for (const auto i : entry->second) order.push_back(members[i]);
  }
  return order;
}

std::optional<double> slowest_hop(const Machine& machine, std::span<const DeviceGroup> groups,
                                  std::span<const std::uint32_t> order) {
  if (order.size() < 2) return std::nullopt;
  double least = kInfinite;
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    const auto bytes = bytes_per_second_between(machine, groups[order[i]], groups[order[i + 1]]);
    if (!bytes) return std::nullopt;
    least = std::min(least, *bytes);
  }
  return least;
}

}  // namespace muster

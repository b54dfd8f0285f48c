// The front of the chain searches: it picks the algorithm that the shape of a problem allows and
// says how sure the answer is. Even cuts admit the greedy argument (reach as far as possible); cuts
// of different cost need sets of reachable units. Past a size where exactness would take more than
// about a second, class orders are tried instead, and a lower bound is returned with them, so that
// a caller can state the gap.

#include "planner/chain/chain.h"

#include <algorithm>

#include "base/check.h"
#include "planner/chain/chain_slowest.h"
#include "planner/chain/class_counts.h"

namespace muster {
namespace {

// Beyond these the exact search would take more than about a second; the tables then have 64 MB
// and 8 MB.
constexpr std::uint64_t kCombinationsMax = 16'000'000;
constexpr std::uint64_t kReachedBitsMax = 616'000'000;

std::optional<ChainPlacement> placement_of(const ChainProblem& problem,
                                           std::optional<ClassedStages> found) {
  if (!found) return std::nullopt;
  auto placement = make_placement(problem, std::move(found->stages), found->classes);
  placement.bound_seconds = placement.slowest_seconds;
  return placement;
}

std::optional<ClassedStages> in_order(const ChainTables& tables,
                                      std::span<const std::uint32_t> order) {
  return tables.is_cut_uniform() ? slowest_in_order(tables, order)
                                 : slowest_in_order_uneven(tables, order);
}

// Too many combinations: the best of some orders, and how far from the best it can be at most.
std::optional<ChainPlacement> best_of_orders(const ChainProblem& problem, const ChainTables& tables,
                                             std::span<const std::uint32_t> counts) {
  std::optional<ClassedStages> best;
  for (const auto& classes : class_orders(problem)) {
    auto found = in_order(tables, devices_in(classes, counts));
    if (!found) continue;
    for (std::size_t i = 0; i < found->stages.size(); ++i) {
      found->stages[i].device = found->classes[i];
    }
    if (!best || slowest_ticks(tables, *found) < slowest_ticks(tables, *best)) {
      best = std::move(found);
    }
  }
  if (!best) return std::nullopt;
  const auto ticks = slowest_ticks(tables, *best);
  const auto bound = slowest_lower_bound(tables, counts);
  auto placement = placement_of(problem, std::move(best));
  if (bound < ticks) {
    placement->bound_seconds *= static_cast<double>(bound) / static_cast<double>(ticks);
  }
  return placement;
}

}  // namespace

std::optional<ChainPlacement> min_slowest_in_order(const ChainProblem& problem,
                                                   std::span<const std::uint32_t> order) {
  const ChainTables tables(problem);
  for (const auto c : order) MUSTER_CHECK(c < tables.class_count());
  if (tables.unit_count() == 0) return ChainPlacement{};
  return placement_of(problem, in_order(tables, order));
}

std::optional<ChainPlacement> min_slowest_any_order(const ChainProblem& problem,
                                                    std::span<const std::uint32_t> counts) {
  const ChainTables tables(problem);
  MUSTER_CHECK(counts.size() == tables.class_count());
  if (tables.unit_count() == 0) return ChainPlacement{};
  // A stage has at least a unit, so more devices of a class than units are of no use.
  std::vector<std::uint32_t> useful(counts.begin(), counts.end());
  for (auto& count : useful) count = std::min(count, tables.unit_count());
  const auto combinations = ClassCounts::combinations(useful, kCombinationsMax);
  if (!combinations ||
      (!tables.is_cut_uniform() && *combinations > kReachedBitsMax / (tables.unit_count() + 1U))) {
    return best_of_orders(problem, tables, useful);
  }
  return placement_of(problem, tables.is_cut_uniform() ? slowest_any_order(tables, useful)
                                                       : slowest_any_order_uneven(tables, useful));
}

std::vector<std::optional<double>> min_slowest_of_equal(
    const ChainProblem& problem, std::span<const std::uint32_t> device_counts) {
  const ChainTables tables(problem);
  MUSTER_CHECK(tables.class_count() > 0);
  std::vector<std::optional<double>> seconds(device_counts.size());
  const auto tell = [&](std::size_t i, const std::optional<ClassedStages>& found) {
    if (const auto placement = placement_of(problem, found)) {
      seconds[i] = placement->slowest_seconds;
    }
  };
  if (tables.is_cut_uniform()) {
    slowest_of_equal(tables, device_counts, tell);
    return seconds;
  }
  for (std::size_t i = 0; i < device_counts.size(); ++i) {
    tell(i, slowest_in_order_uneven(tables, std::vector<std::uint32_t>(device_counts[i], 0)));
  }
  return seconds;
}

}  // namespace muster

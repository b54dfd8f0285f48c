#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "planner/chain/chain_tables.h"

namespace muster {

/// Stages with the class of each; `stages[i].device` as the question asks.
struct ClassedStages {
  std::vector<ChainStage> stages;
  std::vector<std::uint32_t> classes;

  void add(ChainStage stage, std::uint32_t device_class) {
    stages.push_back(stage);
    classes.push_back(device_class);
  }
};

/// The slowest stage in ticks.
ChainTables::Ticks slowest_ticks(const ChainTables& tables, const ClassedStages& found);

/// The least bound at which `probe` finds stages, between `lower` and no bound at all.
///
/// A bisection that jumps: stages found lower the upper end to what they really take, a refusal
/// raises the lower end to `next`, the least bound that could change the answer. It ends when the
/// ends meet, so the result is exact.
/// `upper_known`: a bound at which it finds stages if it ever does.
/// `probe(bound)`: optional<ClassedStages>; `next(bound)`: after a refusal, a Ticks above `bound`.
/// Source: Pinar, Tabak, Aykanat, JPDC 68 (2008), section 4 (exact bisection).
template <typename Probe, typename Next>
std::optional<ClassedStages> least_slowest(
    const ChainTables& tables, ChainTables::Ticks lower, Probe probe, Next next,
    ChainTables::Ticks upper_known = ChainTables::kTicksMax) {
  auto best = probe(upper_known);
  if (!best) return std::nullopt;
  auto upper = slowest_ticks(tables, *best);
  while (lower < upper) {
    const auto middle = lower + (upper - lower) / 2;
    if (auto found = probe(middle)) {
      best = std::move(found);
      upper = slowest_ticks(tables, *best);
    } else {
      lower = std::min(upper, next(middle));
    }
  }
  return best;
}

/// P1 and P2 where every cut costs the same (`tables.is_cut_uniform()`): the furthest unit that can
/// be reached is all that matters. Where cuts differ: the set of units that can be reached.
std::optional<ClassedStages> slowest_in_order(const ChainTables& tables,
                                              std::span<const std::uint32_t> order);
std::optional<ClassedStages> slowest_in_order_uneven(const ChainTables& tables,
                                                     std::span<const std::uint32_t> order);
std::optional<ClassedStages> slowest_any_order(const ChainTables& tables,
                                               std::span<const std::uint32_t> counts);
std::optional<ClassedStages> slowest_any_order_uneven(const ChainTables& tables,
                                                      std::span<const std::uint32_t> counts);

/// P5: P1 for several numbers of devices of class 0, with even cuts. Each answer is told once, with
/// its position in `device_counts`.
using ToldStages = std::function<void(std::size_t, const std::optional<ClassedStages>&)>;
void slowest_of_equal(const ChainTables& tables, std::span<const std::uint32_t> device_counts,
                      const ToldStages& tell);

/// A bound below which no placement can be, whatever the order: the better of two relaxations.
ChainTables::Ticks slowest_lower_bound(const ChainTables& tables,
                                       std::span<const std::uint32_t> counts);

}  // namespace muster

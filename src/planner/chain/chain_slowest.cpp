// The least slowest stage by bisection over exact integers: a probe with a bound asks how far each
// class can reach from each unit, O(L) by two pointers. Greedy reach is optimal when all cuts cost
// the same, so a state is one number, the furthest unit. A failed probe reports the next bound that
// changes anything, and a successful one what it really takes; so the search ends at the exact
// answer in few probes. Source: Pinar, Tabak, Aykanat, JPDC 68 (2008).

#include "planner/chain/chain_slowest.h"

#include <numeric>

#include "planner/chain/class_counts.h"

namespace muster {
namespace {

using Ticks = ChainTables::Ticks;

// How far a stage of each class reaches from each unit within a bound.
//
// Of two placements of a prefix the one that reaches further is never worse, as every cut costs the
// same: whatever completes the shorter one, with the units already placed left out, completes the
// longer one, and no stage gets slower or larger. The one exception is the whole chain on one
// device, which lacks the tail's extra bytes; it is asked for by itself.
class Reach {
 public:
  explicit Reach(const ChainTables& tables) : tables_(tables), width_(tables.unit_count() + 1U) {
    furthest_.resize(std::size_t{tables.class_count()} * width_);
  }

  void set_bound(Ticks bound) {
    start(bound);
    for (std::uint32_t c = 0; c < tables_.class_count(); ++c) fill(c);
  }

  /// The same for one class; the others are not to be asked for.
  void set_bound(Ticks bound, std::uint32_t device_class) {
    start(bound);
    fill(device_class);
  }

  std::uint32_t from(std::uint32_t device_class, std::uint32_t begin) const {
    return furthest_[device_class * width_ + begin];
  }

  bool takes_whole(std::uint32_t device_class) const {
    return tables_.fits_whole(device_class) &&
           tables_.stage_ticks(device_class, 0, tables_.unit_count()) <= bound_;
  }

  /// The least bound that lets any stage reach further.
  Ticks next_bound() const { return next_bound_; }

 private:
  void start(Ticks bound) {
    bound_ = bound;
    next_bound_ = ChainTables::kTicksMax;
  }
  void refuse(Ticks ticks) { next_bound_ = std::min(next_bound_, ticks); }

  // Two pointers, as the furthest end never falls when the begin grows. The last unit is for
  // itself: no cut, but the tail's extra.
  void fill(std::uint32_t device_class) {
    const auto unit_count = tables_.unit_count();
    const auto times = tables_.time_until(device_class);
    const auto begins = tables_.fit_begin(device_class);
    const auto cuts = tables_.cut_at();
    auto* row = furthest_.data() + device_class * width_;
    row[unit_count] = unit_count;
    std::uint32_t end = 0;
    for (std::uint32_t begin = 0; begin < unit_count; ++begin) {
      end = std::max(end, begin);
      while (end + 1 < unit_count && begins[end + 1] <= begin) {
        const auto ticks = times[end + 1] - times[begin] + cuts[end + 1];
        if (ticks > bound_) {
          refuse(ticks);
          break;
        }
        ++end;
      }
      row[begin] = end;
      const bool may_finish =
          begin == 0 ? tables_.fits_whole(device_class) : begins[unit_count] <= begin;
      if (!may_finish) continue;
      const auto ticks = times[unit_count] - times[begin];
      if (ticks <= bound_) {
        row[begin] = unit_count;
      } else {
        refuse(ticks);
      }
    }
  }

  const ChainTables& tables_;
  std::size_t width_;
  std::vector<std::uint32_t> furthest_;  // [C, L + 1]
  Ticks bound_ = 0;
  Ticks next_bound_ = 0;
};

std::optional<ClassedStages> walk(const Reach& reach, std::span<const std::uint32_t> order,
                                  std::uint32_t unit_count) {
  ClassedStages found;
  std::uint32_t begin = 0;
  for (std::size_t i = 0; i < order.size() && begin < unit_count; ++i) {
    const auto end = reach.from(order[i], begin);
    if (end == begin) continue;
    found.add({static_cast<std::uint32_t>(i), begin, end}, order[i]);
    begin = end;
  }
  if (begin < unit_count) return std::nullopt;
  return found;
}

// The combination of counts with the fewest devices that reaches the end; `is_any_enough`: the
// first one will do.
class CountSearch {
 public:
  CountSearch(const ChainTables& tables, const Reach& reach, std::span<const std::uint32_t> counts)
      : tables_(tables), reach_(reach), counts_(counts), furthest_(counts_.size()) {}

  std::optional<ClassedStages> run(bool is_any_enough) {
    const auto unit_count = tables_.unit_count();
    std::optional<std::size_t> best;
    std::uint64_t best_devices = 0;
    auto state = counts_.first();
    do {
      furthest_[state.index] = furthest(state);
      if (furthest_[state.index] == unit_count && (!best || state.devices < best_devices)) {
        best = state.index;
        best_devices = state.devices;
        if (is_any_enough) break;
      }
    } while (counts_.advance(state));
    if (!best) return std::nullopt;
    return stages_of(counts_.at(*best));
  }

 private:
  std::uint32_t furthest(const ClassCounts::State& state) const {
    std::uint32_t end = 0;
    for (std::uint32_t c = 0; c < counts_.class_count(); ++c) {
      if (state.used[c] == 0) continue;
      end = std::max(end, reach_.from(c, furthest_[state.index - counts_.stride(c)]));
    }
    return end;
  }

  // Backwards: which class brought each combination as far as it got.
  ClassedStages stages_of(ClassCounts::State state) const {
    ClassedStages found;
    while (state.devices > 0) {
      const auto end = furthest_[state.index];
      std::uint32_t c = 0;
      while (state.used[c] == 0 ||
             reach_.from(c, furthest_[state.index - counts_.stride(c)]) != end) {
        ++c;
      }
      counts_.take_one(state, c);
      const auto begin = furthest_[state.index];
      if (begin < end) found.add({c, begin, end}, c);
    }
    std::reverse(found.stages.begin(), found.stages.end());
    std::reverse(found.classes.begin(), found.classes.end());
    return found;
  }

  const ChainTables& tables_;
  const Reach& reach_;
  ClassCounts counts_;
  std::vector<std::uint32_t> furthest_;  // [combinations]
};

// Units cannot be shared more evenly than this, in any order and with memory ignored.
//
// For weights y >= 0 with sum(n_c y_c) = 1 each placement has
//   slowest >= sum_c n_c y_c slowest >= sum_u min_c y_c t_c(u),
// the dual of the linear programme that lets units be divided. With y_c in proportion to the speed
// over the whole chain it is exact for classes of one shape of times.
Ticks divided_bound(const ChainTables& tables, std::span<const std::uint32_t> counts) {
  const auto unit_count = tables.unit_count();
  std::vector<double> weight(counts.size(), 0.0);
  double sum = 0.0;
  for (std::uint32_t c = 0; c < counts.size(); ++c) {
    const auto whole = static_cast<double>(tables.time_until(c)[unit_count]);
    if (counts[c] == 0) continue;
    if (whole <= 0.0) return 0;
    weight[c] = 1.0 / whole;
    sum += counts[c] * weight[c];
  }
  if (sum <= 0.0) return 0;
  double bound = 0.0;
  for (std::uint32_t u = 0; u < unit_count; ++u) {
    double least = static_cast<double>(ChainTables::kTicksMax);
    for (std::uint32_t c = 0; c < counts.size(); ++c) {
      if (counts[c] == 0) continue;
      const auto times = tables.time_until(c);
      least = std::min(least, weight[c] * static_cast<double>(times[u + 1] - times[u]));
    }
    bound += least;
  }
  // Less a little for the roundings of a sum of doubles.
  constexpr double kRounding = 1e-12;
  return static_cast<Ticks>(bound / sum * (1.0 - kRounding));
}

// If every device were as good as the best class at every unit.
std::optional<ClassedStages> walk_best(const Reach& reach, std::span<const std::uint32_t> counts,
                                       std::uint32_t unit_count) {
  ClassedStages found;
  auto devices = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  for (std::uint32_t begin = 0; begin < unit_count; --devices) {
    std::uint32_t best = 0;
    std::uint32_t end = begin;
    for (std::uint32_t c = 0; c < counts.size(); ++c) {
      if (counts[c] == 0 || reach.from(c, begin) <= end) continue;
      best = c;
      end = reach.from(c, begin);
    }
    if (devices == 0 || end == begin) return std::nullopt;
    found.add({best, begin, end}, best);
    begin = end;
  }
  return found;
}

}  // namespace

Ticks slowest_ticks(const ChainTables& tables, const ClassedStages& found) {
  Ticks slowest = 0;
  for (std::size_t i = 0; i < found.stages.size(); ++i) {
    const auto& stage = found.stages[i];
    slowest = std::max(slowest, tables.stage_ticks(found.classes[i], stage.begin, stage.end));
  }
  return slowest;
}

std::optional<ClassedStages> slowest_in_order(const ChainTables& tables,
                                              std::span<const std::uint32_t> order) {
  Reach reach(tables);
  const auto probe = [&](Ticks bound) -> std::optional<ClassedStages> {
    reach.set_bound(bound);
    if (auto found = walk(reach, order, tables.unit_count())) return found;
    const auto whole = std::find_if(order.begin(), order.end(),
                                    [&](std::uint32_t c) { return reach.takes_whole(c); });
    if (whole == order.end()) return std::nullopt;
    ClassedStages found;
    found.add({static_cast<std::uint32_t>(whole - order.begin()), 0, tables.unit_count()}, *whole);
    return found;
  };
  std::vector<std::uint32_t> counts(tables.class_count(), 0);
  for (const auto c : order) ++counts[c];
  return least_slowest(tables, divided_bound(tables, counts), probe,
                       [&](Ticks) { return reach.next_bound(); });
}

std::optional<ClassedStages> slowest_any_order(const ChainTables& tables,
                                               std::span<const std::uint32_t> counts) {
  Reach reach(tables);
  CountSearch search(tables, reach, counts);
  const auto probe = [&](Ticks bound) {
    reach.set_bound(bound);
    return search.run(/*is_any_enough=*/true);
  };
  const auto lower = divided_bound(tables, counts);
  const auto found = least_slowest(tables, lower, probe, [&](Ticks) { return reach.next_bound(); });
  if (!found) return std::nullopt;
  reach.set_bound(slowest_ticks(tables, *found));
  return search.run(/*is_any_enough=*/false);
}

void slowest_of_equal(const ChainTables& tables, std::span<const std::uint32_t> device_counts,
                      const ToldStages& tell) {
  Reach reach(tables);
  std::vector<std::uint32_t> counts(tables.class_count(), 0);
  // From few devices to many: the answer of fewer is a bound for more.
  std::vector<std::size_t> rising(device_counts.size());
  std::iota(rising.begin(), rising.end(), std::size_t{0});
  std::stable_sort(rising.begin(), rising.end(), [&](std::size_t a, std::size_t b) {
    return device_counts[a] < device_counts[b];
  });
  auto upper = ChainTables::kTicksMax;
  for (const auto i : rising) {
    counts[0] = std::min(device_counts[i], tables.unit_count());
    const std::vector<std::uint32_t> order(counts[0], 0);
    const auto probe = [&](Ticks bound) {
      reach.set_bound(bound, 0);
      return walk(reach, order, tables.unit_count());
    };
    const auto found = least_slowest(
        tables, divided_bound(tables, counts), probe, [&](Ticks) { return reach.next_bound(); },
        upper);
    if (found) upper = slowest_ticks(tables, *found);
    tell(i, found);
  }
}

Ticks slowest_lower_bound(const ChainTables& tables, std::span<const std::uint32_t> counts) {
  auto bound = divided_bound(tables, counts);
  if (!tables.is_cut_uniform()) return bound;
  Reach reach(tables);
  const auto probe = [&](Ticks limit) {
    reach.set_bound(limit);
    return walk_best(reach, counts, tables.unit_count());
  };
  if (const auto found =
          least_slowest(tables, bound, probe, [&](Ticks) { return reach.next_bound(); })) {
    bound = std::max(bound, slowest_ticks(tables, *found));
  }
  return bound;
}

}  // namespace muster

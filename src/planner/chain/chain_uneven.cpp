// The slowest stage where cuts differ in cost. Then a longer prefix is not always better, since it
// may end at a dear cut, so the searches keep the set of units that can be reached rather than the
// furthest one. For each end only the last reachable begin matters: the shortest stage is the one
// most easily within the bound. Probes here do not report the next bound, so bisection goes tick by
// tick, at most 60 halvings.

#include <algorithm>

#include "base/check.h"
#include "planner/chain/chain_slowest.h"
#include "planner/chain/class_counts.h"

namespace muster {
namespace {

using Ticks = ChainTables::Ticks;

// The least begin of a stage of each class that ends at each unit, within a bound. Where cuts
// differ, a longer prefix may end at a dear cut, so all units that can be reached are kept.
class BeginsWithin {
 public:
  explicit BeginsWithin(const ChainTables& tables)
      : tables_(tables), width_(tables.unit_count() + 1U) {
    begins_.resize(std::size_t{tables.class_count()} * width_);
  }

  void set_bound(Ticks bound) {
    bound_ = bound;
    for (std::uint32_t c = 0; c < tables_.class_count(); ++c) fill(c);
  }

  bool takes_whole(std::uint32_t device_class) const {
    return tables_.fits_whole(device_class) &&
           tables_.stage_ticks(device_class, 0, tables_.unit_count()) <= bound_;
  }

  /// Calls `reached(begin, end)` for every `end` that a stage of the class can reach from a begin
  /// for which `can_begin(begin)` holds; `begin` is the last such one.
  template <typename CanBegin, typename Reached>
  void extend(std::uint32_t device_class, CanBegin can_begin, Reached reached) const {
    const auto* row = begins_.data() + device_class * width_;
    const auto unit_count = tables_.unit_count();
    std::optional<std::uint32_t> last;
    for (std::uint32_t end = 1; end <= unit_count; ++end) {
      if (can_begin(end - 1)) last = end - 1;
      if (last && *last >= row[end]) reached(*last, end);
    }
    if (can_begin(0) && takes_whole(device_class)) reached(0U, unit_count);
  }

 private:
  void fill(std::uint32_t device_class) {
    const auto times = tables_.time_until(device_class);
    const auto begins = tables_.fit_begin(device_class);
    const auto cuts = tables_.cut_at();
    auto* row = begins_.data() + device_class * width_;
    row[0] = 0;
    for (std::uint32_t end = 1; end <= tables_.unit_count(); ++end) {
      const auto least = times[end] + cuts[end] - bound_;  // what times[begin] must be
      const auto found = std::lower_bound(times.begin() + begins[end], times.begin() + end, least);
      row[end] = static_cast<std::uint32_t>(found - times.begin());
    }
  }

  const ChainTables& tables_;
  std::size_t width_;
  std::vector<std::uint32_t> begins_;  // [C, L + 1]; the end itself: none
  Ticks bound_ = 0;
};

// The devices in order; each position remembers the stage that reached it first.
class OrderSearch {
 public:
  OrderSearch(const ChainTables& tables, std::span<const std::uint32_t> order)
      : tables_(tables), order_(order) {}

  std::optional<ClassedStages> run(const BeginsWithin& begins) {
    const auto unit_count = tables_.unit_count();
    stages_.assign(unit_count + 1U, {});
    reached_.assign(unit_count + 1U, false);
    reached_[0] = true;
    // A class that found nothing new finds nothing until another one did.
    std::vector<std::uint32_t> seen(tables_.class_count(), 0);
    std::uint32_t version = 1;
    std::vector<ChainStage> added;
    for (std::uint32_t i = 0; i < order_.size() && !reached_[unit_count]; ++i) {
      if (seen[order_[i]] == version) continue;
      added.clear();
      begins.extend(
          order_[i], [&](std::uint32_t unit) { return reached_[unit]; },
          [&](std::uint32_t begin, std::uint32_t end) {
            if (!reached_[end]) added.push_back({i, begin, end});
          });
      for (const auto& stage : added) {
        stages_[stage.end] = stage;
        reached_[stage.end] = true;
      }
      if (!added.empty()) ++version;
      seen[order_[i]] = added.empty() ? version : 0;
    }
    if (!reached_[unit_count]) return std::nullopt;
    return stages_found();
  }

 private:
  ClassedStages stages_found() const {
    ClassedStages found;
    for (auto end = tables_.unit_count(); end > 0; end = stages_[end].begin) {
      found.add(stages_[end], order_[stages_[end].device]);
    }
    std::reverse(found.stages.begin(), found.stages.end());
    std::reverse(found.classes.begin(), found.classes.end());
    return found;
  }

  const ChainTables& tables_;
  std::span<const std::uint32_t> order_;
  std::vector<ChainStage> stages_;  // [L + 1] the stage that ends there
  std::vector<bool> reached_;       // [L + 1]
};

// For each combination of counts the set of units that it can reach.
class CountSearch {
 public:
  CountSearch(const ChainTables& tables, std::span<const std::uint32_t> counts)
      : tables_(tables), counts_(counts), width_(tables.unit_count() + 1U) {
    reached_.resize(counts_.size() * width_);
  }

  std::optional<ClassedStages> run(const BeginsWithin& begins, bool is_any_enough) {
    const auto unit_count = tables_.unit_count();
    std::fill(reached_.begin(), reached_.end(), false);
    reached_[0] = true;
    std::optional<ClassCounts::State> best;
    auto state = counts_.first();
    do {
      for (std::uint32_t c = 0; c < counts_.class_count(); ++c) fill(begins, state, c);
      if (has(state.index, unit_count) && (!best || state.devices < best->devices)) {
        best = state;
        if (is_any_enough) break;
      }
    } while (counts_.advance(state));
    if (!best) return std::nullopt;
    return stages_of(begins, std::move(*best));
  }

 private:
  bool has(std::size_t index, std::uint32_t unit) const { return reached_[index * width_ + unit]; }

  void fill(const BeginsWithin& begins, const ClassCounts::State& state, std::uint32_t c) {
    if (state.used[c] == 0) return;
    const auto before = state.index - counts_.stride(c);
    for (std::uint32_t unit = 0; unit < width_; ++unit) {
      if (has(before, unit)) reached_[state.index * width_ + unit] = true;
    }
    begins.extend(
        c, [&](std::uint32_t unit) { return has(before, unit); },
        [&](std::uint32_t, std::uint32_t end) { reached_[state.index * width_ + end] = true; });
  }

  // Backwards: a class that could leave its device out, or the stage by which it reached `end`.
  ClassedStages stages_of(const BeginsWithin& begins, ClassCounts::State state) const {
    ClassedStages found;
    auto end = tables_.unit_count();
    while (end > 0) {
      std::optional<ChainStage> stage;
      for (std::uint32_t c = 0; c < counts_.class_count() && !stage; ++c) {
        if (state.used[c] == 0) continue;
        const auto before = state.index - counts_.stride(c);
        if (has(before, end)) {
          stage = ChainStage{c, end, end};
          break;
        }
        begins.extend(
            c, [&](std::uint32_t unit) { return has(before, unit); },
            [&](std::uint32_t from, std::uint32_t to) {
              if (to == end) stage = ChainStage{c, from, to};
            });
      }
      MUSTER_CHECK(stage.has_value());
      counts_.take_one(state, stage->device);
      if (stage->begin < stage->end) found.add(*stage, stage->device);
      end = stage->begin;
    }
    std::reverse(found.stages.begin(), found.stages.end());
    std::reverse(found.classes.begin(), found.classes.end());
    return found;
  }

  const ChainTables& tables_;
  ClassCounts counts_;
  std::size_t width_;
  std::vector<bool> reached_;  // [combinations, L + 1]
};

}  // namespace

std::optional<ClassedStages> slowest_in_order_uneven(const ChainTables& tables,
                                                     std::span<const std::uint32_t> order) {
  BeginsWithin begins(tables);
  OrderSearch search(tables, order);
  const auto probe = [&](Ticks bound) {
    begins.set_bound(bound);
    return search.run(begins);
  };
  return least_slowest(tables, 0, probe, [](Ticks bound) { return bound + 1; });
}

std::optional<ClassedStages> slowest_any_order_uneven(const ChainTables& tables,
                                                      std::span<const std::uint32_t> counts) {
  BeginsWithin begins(tables);
  CountSearch search(tables, counts);
  const auto probe = [&](Ticks bound) {
    begins.set_bound(bound);
    return search.run(begins, /*is_any_enough=*/true);
  };
  const auto found = least_slowest(tables, 0, probe, [](Ticks bound) { return bound + 1; });
  if (!found) return std::nullopt;
  begins.set_bound(slowest_ticks(tables, *found));
  return search.run(begins, /*is_any_enough=*/false);
}

}  // namespace muster

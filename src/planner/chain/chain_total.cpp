// The least sum of stages and cuts is a shortest path over prefixes of the chain. As stage times
// are differences of prefix sums and the begins that fit move only forward, the best begin for each
// end is the minimum of a sliding window, so one device costs O(L) and not O(L^2). With free order,
// a class is counted only once it runs short: most tables stay small, and each relaxed answer is a
// lower bound.

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "planner/chain/chain_tables.h"
#include "planner/chain/class_counts.h"

namespace muster {
namespace {

using Ticks = ChainTables::Ticks;

// 128 MB of table, and less than a second.
constexpr std::uint64_t kEntriesMax = 16'000'000;

// The least key among the begins of a window that only moves forward; of equal keys the first, so
// that stages are long and devices few.
class WindowLeast {
 public:
  explicit WindowLeast(std::size_t width) { rising_.reserve(width); }

  void clear() {
    rising_.clear();
    front_ = 0;
  }
  void push(std::uint32_t begin, Ticks key) {
    while (rising_.size() > front_ && rising_.back().key > key) rising_.pop_back();
    rising_.push_back({begin, key});
  }
  void drop_before(std::uint32_t begin) {
    while (front_ < rising_.size() && rising_[front_].begin < begin) ++front_;
  }
  bool is_empty() const { return front_ == rising_.size(); }
  std::uint32_t begin() const { return rising_[front_].begin; }
  Ticks key() const { return rising_[front_].key; }

 private:
  struct Entry {
    std::uint32_t begin;
    Ticks key;
  };
  std::vector<Entry> rising_;
  std::size_t front_ = 0;
};

// P3. `least_[u]`: the least time for the units before u on the devices so far.
class OrderedTotal {
 public:
  OrderedTotal(const ChainTables& tables, std::span<const std::uint32_t> order)
      : tables_(tables),
        order_(order),
        least_(tables.unit_count() + 1U, ChainTables::kTicksMax),
        node_(tables.unit_count() + 1U, 0),
        window_(tables.unit_count() + 1U) {
    least_[0] = 0;
  }

  std::optional<std::vector<ChainStage>> run() {
    // A class that improved nothing improves nothing until another one did.
    std::vector<std::uint32_t> seen(tables_.class_count(), 0);
    std::uint32_t version = 1;
    for (std::uint32_t i = 0; i < order_.size(); ++i) {
      const auto c = order_[i];
      if (seen[c] == version) continue;
      const bool is_better = add_device(i);
      if (is_better) ++version;
      seen[c] = is_better ? 0 : version;
    }
    const auto unit_count = tables_.unit_count();
    if (least_[unit_count] == ChainTables::kTicksMax) return std::nullopt;
    std::vector<ChainStage> stages;
    for (auto n = node_[unit_count]; n != 0; n = nodes_[n - 1].before) {
      stages.push_back(nodes_[n - 1].stage);
    }
    std::reverse(stages.begin(), stages.end());
    return stages;
  }

 private:
  struct Node {
    ChainStage stage;
    std::size_t before;  // 1 + index of the node of the stage before; 0: none
  };

  bool add_device(std::uint32_t device) {
    const auto c = order_[device];
    const auto times = tables_.time_until(c);
    const auto begins = tables_.fit_begin(c);
    const auto unit_count = tables_.unit_count();
    found_.clear();
    window_.clear();
    for (std::uint32_t end = 1; end <= unit_count; ++end) {
      if (least_[end - 1] < ChainTables::kTicksMax) {
        window_.push(end - 1, least_[end - 1] - times[end - 1]);
      }
      window_.drop_before(begins[end]);
      if (window_.is_empty()) continue;
      const auto total = window_.key() + times[end] + tables_.cut_at()[end];
      if (total < least_[end]) found_.push_back({{device, window_.begin(), end}, total});
    }
    if (tables_.fits_whole(c) && times[unit_count] < least_[unit_count]) {
      found_.push_back({{device, 0, unit_count}, times[unit_count]});
    }
    // Only now: a device has one stage. The nodes are looked up before any of them changes.
    for (auto& [stage, total, before] : found_) before = node_[stage.begin];
    for (const auto& [stage, total, before] : found_) {
      if (total >= least_[stage.end]) continue;
      least_[stage.end] = total;
      nodes_.push_back({stage, before});
      node_[stage.end] = nodes_.size();
    }
    return !found_.empty();
  }

  struct Found {
    ChainStage stage;
    Ticks total;
    std::size_t before = 0;
  };

  const ChainTables& tables_;
  std::span<const std::uint32_t> order_;
  std::vector<Ticks> least_;       // [L + 1]
  std::vector<std::size_t> node_;  // [L + 1] 1 + index of the last stage's node; 0: none
  std::vector<Node> nodes_;        // grows with each improvement, seldom beyond a few L
  std::vector<Found> found_;
  WindowLeast window_;
};

// P4 with some classes counted and the others unlimited: for each combination of counted devices
// the least time for each prefix.
class CountedTotal {
 public:
  // `counts`: [C] with 0 for the unlimited classes.
  CountedTotal(const ChainTables& tables, std::span<const std::uint32_t> counts,
               std::vector<bool> is_counted)
      : tables_(tables),
        counts_(counts),
        is_counted_(std::move(is_counted)),
        width_(tables.unit_count() + 1U),
        windows_(tables.class_count(), WindowLeast(width_)) {
    least_.assign(counts_.size() * width_, ChainTables::kTicksMax);
  }

  /// Stages with their class; nullopt when nothing fits.
  std::optional<std::vector<ChainStage>> run() {
    auto state = counts_.first();
    do {
      fill(state);
    } while (counts_.advance(state));
    const auto last = counts_.at(counts_.size() - 1);
    if (row(last.index)[tables_.unit_count()] == ChainTables::kTicksMax) return std::nullopt;
    return stages_of(last);
  }

 private:
  Ticks* row(std::size_t index) { return least_.data() + index * width_; }
  const Ticks* row(std::size_t index) const { return least_.data() + index * width_; }

  bool may_use(const ClassCounts::State& state, std::uint32_t c) const {
    return !is_counted_[c] || state.used[c] > 0;
  }
  // Where a stage of the class begins: with one device of it less, or here when it is unlimited.
  const Ticks* source(const ClassCounts::State& state, std::uint32_t c) const {
    return row(is_counted_[c] ? state.index - counts_.stride(c) : state.index);
  }

  void fill(const ClassCounts::State& state) {
    auto* least = row(state.index);
    least[0] = 0;
    for (auto& window : windows_) window.clear();
    for (std::uint32_t end = 1; end < width_; ++end) {
      for (std::uint32_t c = 0; c < windows_.size(); ++c) {
        if (may_use(state, c)) least[end] = std::min(least[end], extend(state, c, end));
      }
    }
  }

  // The least time of units [0, end) whose last device is of the class, or is left out.
  Ticks extend(const ClassCounts::State& state, std::uint32_t c, std::uint32_t end) {
    const auto* from = source(state, c);
    const auto times = tables_.time_until(c);
    auto& window = windows_[c];
    if (from[end - 1] < ChainTables::kTicksMax)
      window.push(end - 1, from[end - 1] - times[end - 1]);
    window.drop_before(tables_.fit_begin(c)[end]);
    auto total = is_counted_[c] ? from[end] : ChainTables::kTicksMax;
    if (!window.is_empty()) {
      total = std::min(total, window.key() + times[end] + tables_.cut_at()[end]);
    }
    if (end == tables_.unit_count() && tables_.fits_whole(c)) total = std::min(total, times[end]);
    return total;
  }

  std::vector<ChainStage> stages_of(ClassCounts::State state) const {
    std::vector<ChainStage> stages;
    for (auto end = tables_.unit_count(); end > 0;) {
      const auto stage = last_stage(state, end);
      if (is_counted_[stage.device]) counts_.take_one(state, stage.device);
      if (stage.begin < end) stages.push_back(stage);
      end = stage.begin;
    }
    std::reverse(stages.begin(), stages.end());
    return stages;
  }

  // Which step gave the least time; a device that is left out before any stage.
  ChainStage last_stage(const ClassCounts::State& state, std::uint32_t end) const {
    const auto wanted = row(state.index)[end];
    for (std::uint32_t c = 0; c < windows_.size(); ++c) {
      if (is_counted_[c] && state.used[c] > 0 && source(state, c)[end] == wanted) {
        return {c, end, end};
      }
    }
    for (std::uint32_t c = 0; c < windows_.size(); ++c) {
      if (!may_use(state, c)) continue;
      const auto* from = source(state, c);
      const bool is_whole = end == tables_.unit_count() && tables_.fits_whole(c);
      if (is_whole && tables_.stage_ticks(c, 0, end) == wanted) return {c, 0, end};
      for (auto begin = tables_.fit_begin(c)[end]; begin < end; ++begin) {
        if (from[begin] < ChainTables::kTicksMax &&
            from[begin] + tables_.stage_ticks(c, begin, end) == wanted) {
          return {c, begin, end};
        }
      }
    }
    check_failed("every least time has a step that gave it", __FILE__, __LINE__);
  }

  const ChainTables& tables_;
  ClassCounts counts_;
  std::vector<bool> is_counted_;  // [C]
  std::size_t width_;
  std::vector<Ticks> least_;  // [combinations, L + 1]
  std::vector<WindowLeast> windows_;
};

ChainPlacement placement_of(const ChainProblem& problem, std::vector<ChainStage> stages,
                            std::span<const std::uint32_t> order) {
  std::vector<std::uint32_t> classes;
  for (const auto& stage : stages) {
    classes.push_back(order.empty() ? stage.device : order[stage.device]);
  }
  auto placement = make_placement(problem, std::move(stages), classes);
  placement.bound_seconds = placement.total_seconds;
  return placement;
}

std::optional<ChainPlacement> best_of_orders(const ChainProblem& problem, const ChainTables& tables,
                                             std::span<const std::uint32_t> counts,
                                             double bound_seconds) {
  std::optional<ChainPlacement> best;
  for (const auto& classes : class_orders(problem)) {
    const auto order = devices_in(classes, counts);
    auto stages = OrderedTotal(tables, order).run();
    if (!stages) continue;
    for (auto& stage : *stages) stage.device = order[stage.device];
    auto placement = placement_of(problem, std::move(*stages), {});
    if (!best || placement.total_seconds < best->total_seconds) best = std::move(placement);
  }
  if (best) best->bound_seconds = std::min(bound_seconds, best->total_seconds);
  return best;
}

}  // namespace

std::optional<ChainPlacement> min_total_in_order(const ChainProblem& problem,
                                                 std::span<const std::uint32_t> order) {
  const ChainTables tables(problem);
  for (const auto c : order) MUSTER_CHECK(c < tables.class_count());
  if (tables.unit_count() == 0) return ChainPlacement{};
  auto stages = OrderedTotal(tables, order).run();
  if (!stages) return std::nullopt;
  return placement_of(problem, std::move(*stages), order);
}

// Classes are counted only once they turn out to be short: a placement that is best with some
// classes unlimited and keeps to all counts is best. What is unlimited still bounds from below.
std::optional<ChainPlacement> min_total_any_order(const ChainProblem& problem,
                                                  std::span<const std::uint32_t> counts) {
  const ChainTables tables(problem);
  MUSTER_CHECK(counts.size() == tables.class_count());
  if (tables.unit_count() == 0) return ChainPlacement{};
  std::vector<std::uint32_t> useful(counts.begin(), counts.end());
  for (auto& count : useful) count = std::min(count, tables.unit_count());
  std::vector<std::uint32_t> counted(useful.size(), 0);
  std::vector<bool> is_counted(useful.size());
  for (std::size_t c = 0; c < useful.size(); ++c) is_counted[c] = useful[c] == 0;
  double bound_seconds = 0.0;
  for (;;) {
    if (!ClassCounts::combinations(counted, kEntriesMax / (tables.unit_count() + 1U))) {
      return best_of_orders(problem, tables, useful, bound_seconds);
    }
    auto stages = CountedTotal(tables, counted, is_counted).run();
    if (!stages) return std::nullopt;
    std::vector<std::uint32_t> used(useful.size(), 0);
    for (const auto& stage : *stages) ++used[stage.device];
    bool is_within = true;
    for (std::size_t c = 0; c < useful.size(); ++c) {
      if (used[c] <= useful[c]) continue;
      is_within = false;
      is_counted[c] = true;
      counted[c] = useful[c];
    }
    auto placement = placement_of(problem, std::move(*stages), {});
    if (is_within) return placement;
    bound_seconds = placement.total_seconds;
  }
}

}  // namespace muster

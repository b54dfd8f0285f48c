#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/turn_order.h"

namespace muster {

/// One text as the scheduler knows it.
struct WorkItem {
  ItemKey key = 0;
  std::uint32_t token_count = 0;
  std::uint64_t rank = 0;  // lower goes first, and of equal ones the older; scheduler/fair_order.h
};

/// Texts that one worker computes together.
struct WorkBatch {
  std::uint64_t id = 0;  // given by the dispatcher
  std::vector<WorkItem> items;
  std::uint64_t token_count = 0;
  std::uint32_t strike_count = 0;            // workers that died while they had these texts
  std::optional<std::size_t> struck_device;  // which device died of it or failed at it last
  bool is_retry = false;                     // as a device failed at it that lives
};

struct CutLimits {
  std::uint64_t token_budget = 0;       // upper bound; a single longer text still goes, alone
  std::uint64_t slot_count = 1;         // of all eligible devices
  std::uint64_t worthwhile_tokens = 0;  // may go at once, however many slots there are
  bool is_only_device = false;          // then a text that struck this device may come back to it
  bool may_take_suspects = true;
  /// Only texts whose rank is at most so far behind the first one's fill a batch up: else the rest
  /// of a call waits behind later ones whose lengths fit better.
  std::uint64_t rank_window = UINT64_MAX;
};

/// The texts that wait for a device, and those that came back from dead ones. Late binding:
/// nothing belongs to a device before the device asks.
///
/// Equal lengths go together (attention works on groups of one length), and the text whose turn it
/// is, by rank and then by age, is always in the next cut, so that none waits for ever.
///
/// Pure: no clock, no thread. Threads: owned by the coordinator's loop.
class BatchQueue {
 public:
  void add(const WorkItem& item);

  /// The next batch for `device`; nullopt when nothing waits that it may take. Its size is an even
  /// share of the queued tokens over all slots, so that the last texts of a run are spread over all
  /// devices instead of filling one; worthwhile_tokens where those are more; at most token_budget.
  std::optional<WorkBatch> cut(std::size_t device, const CutLimits& limits);

  /// The turn of the first text that `cut` could give now; nullopt when it would give nothing.
  std::optional<ItemTurn> first(std::size_t device, const CutLimits& limits) const;

  /// Whether a suspected text waits that `device` may take.
  bool has_suspect(std::size_t device, const CutLimits& limits) const {
    return find_suspect(device, limits) != suspects_.end();
  }

  /// Whether this text waits here and is suspected.
  bool is_suspect(ItemKey key) const;

  /// Takes a waiting text out; false when it does not wait here.
  bool remove(const WorkItem& item);

  /// All texts that are not suspected, in the order of their turns; they wait here no longer.
  std::vector<WorkItem> take_all();

  /// Takes back a batch that was lost through no fault of its texts: the worker was killed from
  /// outside, or had not begun it. The texts wait again as if they had never left.
  void give_back(WorkBatch batch);

  /// Takes back the batch that was running when `device` died of its own fault: a strike. From now
  /// on each of its texts is suspected and runs alone, on another device where there is one. A text
  /// that kills alone is returned, and is not given out again: two deaths find it, however many
  /// texts were with it, at the price of running those one by one.
  std::optional<ItemKey> strike(WorkBatch batch, std::size_t device);

  /// Takes back a batch that `device` could not compute, though it lives: it runs once more as it
  /// is, on another device where there is one. A strike then takes it apart.
  void retry(WorkBatch batch, std::size_t device);

  std::uint64_t item_count() const { return item_count_; }
  std::uint64_t token_count() const { return token_count_; }

 private:
  using Suspects = std::deque<WorkBatch>;

  Suspects::const_iterator find_suspect(std::size_t device, const CutLimits& limits) const;
  void take_of_length(std::uint32_t length, std::uint64_t budget, std::uint64_t rank_most,
                      WorkBatch& batch);
  bool remove_from_length(const WorkItem& item);
  std::optional<std::uint32_t> nearest_length(std::uint32_t start, std::uint64_t rank_most) const;

  std::map<std::uint32_t, TurnOrder> by_length_;
  std::set<std::pair<ItemTurn, std::uint32_t>> first_;  // of each length, and the length
  Suspects suspects_;                                   // run as they are, never mixed
  std::uint64_t item_count_ = 0;
  std::uint64_t token_count_ = 0;
};

}  // namespace muster

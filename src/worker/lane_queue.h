#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "base/inbox.h"
#include "base/result.h"
#include "engine/ops/lane_team.h"

namespace muster {

/// The batches that wait for a lane. A lane that finds none helps the others of its team with
/// theirs, and leaves for the next batch between two items: a batch never waits for a pass of
/// another lane.
///
/// Threads: thread-safe; a lane's number belongs to one thread.
template <typename Item>
class LaneQueue {
 public:
  /// team: outlives the queue.
  LaneQueue(engine::LaneTeam& team, std::size_t capacity) : team_(team), items_(capacity) {}

  /// Errors: as Inbox's.
  Status push(Item item) {
    auto outcome = items_.push(std::move(item));
    team_.call();
    return outcome;
  }

  /// Waits for an item, and helps meanwhile; nullopt once the queue is closed and empty.
  std::optional<Item> take(std::size_t lane) {
    for (;;) {
      const auto calls =
          team_.call_count();  // before looking: a call that comes then is not missed
      if (auto item = items_.try_take()) return item;
      if (items_.is_over()) return std::nullopt;
      team_.help(lane, calls);
    }
  }

  /// No more pushes; takers drain what is left and then see nullopt.
  void close() {
    items_.close();
    team_.call_all();
  }

 private:
  engine::LaneTeam& team_;
  Inbox<Item> items_;
};

}  // namespace muster

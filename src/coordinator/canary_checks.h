#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "coordinator/fleet_view.h"
#include "spec/serving.h"

namespace muster {

/// Rounds in which every group was asked for its canaries, and whose answers are still to come
/// (GET /health).
///
/// Pure but for the callbacks. Threads: owned by the fleet's loop.
class CanaryChecks {
 public:
  using OnDone = std::function<void(const std::vector<CanaryResult>& results)>;

  /// A round that has asked the groups for these models' canaries. results: by group, as they are
  /// without an answer; an answer can only make one worse.
  void begin(TimePoint now, Duration limit, std::vector<CanaryResult> results,
             std::set<std::pair<std::size_t, ModelId>> asked, OnDone on_done);

  /// A group has answered, or will not. seconds: how long that took; the longest of its models is
  /// shown. False when no round is under way.
  bool answer(std::size_t group, ModelId model, bool is_well, const std::string& reason,
              std::optional<double> seconds);

  /// Ends the rounds that have all answers, and those whose time is over: a group that did not
  /// answer is not well.
  void finish(TimePoint now);

  /// When the first round ends at the latest; nullopt: none is under way.
  std::optional<TimePoint> deadline() const;

 private:
  struct Round {
    TimePoint begun_at{};
    TimePoint until{};
    std::vector<CanaryResult> results;
    std::set<std::pair<std::size_t, ModelId>> open;  // answers that are still to come
    OnDone on_done;
  };

  std::deque<Round> rounds_;
};

}  // namespace muster

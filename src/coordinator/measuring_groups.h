#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/worker_groups.h"
#include "spec/device.h"

namespace muster {

/// Which worker group is asked to measure precisions, while workers may end at that. Preferred is
/// the one whose processes ended the least; of these one of the kind that was asked first, since
/// the fastest precision of a GPU is not that of a CPU; then the first. Each has three lives for
/// it.
///
/// A group that computes nothing, of a GPU without its driver (engine/cuda.h), is asked only where
/// there was no other: it tells why.
///
/// Threads: owned by the fleet's loop.
class MeasuringGroups {
 public:
  /// groups: outlives it. What ended before does not count.
  MeasuringGroups(const WorkerGroups& groups, std::size_t count);

  /// Whom to ask now; nullopt: one measures, none is left, or those that are have still to start.
  std::optional<std::size_t> next() const;

  /// One can be asked, now or once it has started.
  bool is_one_left() const { return !left().empty(); }

  /// What there is to tell of it: "precisions are measured here, as the worker on cpu:0 ended".
  /// Empty: nothing, none was asked before it.
  std::string on_asked(std::size_t group);

  /// Counts the lives that have ended. After every step: who has greeted again no longer tells how
  /// its last life ended.
  void note_ends();

  /// How the last one ended: "cpu:1: worker ended with exit code 3"; empty: none has.
  const std::string& last_end() const { return last_end_; }

 private:
  struct Lives {
    std::uint32_t ended_before = 0;
    std::uint32_t ended = 0;  // since
  };

  std::vector<std::size_t> left() const;
  bool does_one_measure() const;
  bool is_before(std::size_t one, std::size_t other) const;

  const WorkerGroups& groups_;
  std::vector<Lives> lives_;          // by group
  std::optional<DeviceKind> kind_;    // of the first that was asked
  std::optional<std::size_t> asked_;  // last
  std::string last_end_;
};

}  // namespace muster

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "coordinator/decoder_streams.h"
#include "scheduler/fair_order.h"

namespace muster {

/// Looks at the order in which the parent gives streams away: what must hold is told with
/// `simulate_steps`. For streams that are given to one worker and never come back.
///
/// A reply of flow f that is asked for ranks no further behind the virtual time than the tokens
/// that f has asked for since nobody waited. Those of flow g that overtake it have ranks between
/// both; each but the last of them ends before that last one begins.
/// Source of the ranks: scheduler/fair_order.h.
///
/// Threads: owned by one.
class TurnChecks {
 public:
  using Violated = std::function<void(const std::string&)>;

  /// cost_most: tokens of a stream, as its flow is charged.
  TurnChecks(std::uint64_t cost_most, Violated violated);

  void on_submitted(StreamId id, FlowId flow, std::uint64_t cost);
  void on_given(StreamId id);
  void on_cancelled(StreamId id) { waiting_.erase(id); }
  /// No stream waits with its owner.
  void on_none_waits() { asked_.clear(); }

  std::size_t waiting_count() const { return waiting_.size(); }
  /// Streams that wait, by flow.
  std::map<FlowId, std::size_t> waiting_by_flow() const;

 private:
  struct Waiting {
    FlowId flow = 0;
    std::uint64_t cost = 0;
    std::uint64_t asked = 0;                            // tokens of its flow, before it
    std::map<FlowId, std::uint64_t> overtaken_by = {};  // tokens of each other flow
  };

  const std::uint64_t cost_most_;
  const Violated violated_;
  std::map<StreamId, Waiting> waiting_;
  std::map<FlowId, std::uint64_t> asked_;  // tokens, since none waited
  std::map<FlowId, StreamId> last_given_;
};

}  // namespace muster

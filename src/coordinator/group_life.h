#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "coordinator/fleet_view.h"
#include "coordinator/model_table.h"
#include "spec/device.h"

namespace muster {

/// Why the fleet itself ends a worker group.
enum class EndReason : std::uint8_t {
  None,      // it ended by itself
  Operator,  // drained, or started again by an operator
  Health,    // it hung, failed, stayed slow or gave a wrong vector
  Fault,     // it does not keep to the protocol
};

/// What an operator wants of a group.
enum class GroupGoal : std::uint8_t { Serve, Drain, Restart };

/// Where one worker group is in its life: the facts by which it is given work, judged and started
/// again. WorkerSupervisor alone changes them; models and work in flight read them.
///
/// A value. Threads: owned by the fleet's loop.
struct GroupLife {
  std::vector<Device> devices;  // one for each member, the leader's first
  std::string name;             // of the leader's device
  std::string engine_class;     // of its last life too; empty: it has never greeted
  std::uint32_t serial = 0;     // of its processes: counts its lives, from 1

  // The processes of this life.
  bool has_processes = false;  // at least one has not ended
  bool is_greeted = false;     // all of them have
  bool is_probing = false;     // the leader measures precisions
  bool was_ready = false;      // they have had a model
  TimePoint last_sign{};       // of life, while they start, load or probe
  bool is_forgiven = false;    // for a pause of this process; until it speaks or is asked more
  EndReason end_reason = EndReason::None;
  std::optional<TimePoint> end_by;       // they are ending; then they are killed, and again
  std::optional<TimePoint> stuck_since;  // they were killed then, and have not ended
  bool is_stuck = false;                 // that was reported
  bool is_at_fault = false;              // they are ended for what they did
  std::size_t lost_frame_count = 0;      // given to others while they die

  // From life to life.
  bool is_idle = false;                 // no model is to be on it yet: it has no processes
  std::optional<TimePoint> restart_at;  // no processes; waits for its back-off
  bool is_given_up = false;
  std::optional<Error> load_error;  // why it was given up, where it could not load a model
  GroupGoal goal = GroupGoal::Serve;
  bool is_asked_for = false;  // that it rests or starts again; until it ends otherwise
  TimePoint drain_until{};
  bool is_quarantined = false;
  bool was_slow = false;  // that was the reason, also while it starts again
  /// Of its devices, by their driver: no processes until it is over, or an operator starts it.
  std::optional<std::string> fault;
  std::string reason;  // why it does not serve, in words
  std::optional<TimePoint> first_ready_at;
  std::uint32_t restart_count = 0;
  std::uint32_t quarantine_count = 0;
  std::string last_words;  // how its processes ended last

  const Device& leader() const { return devices.front(); }

  /// Its processes run and are not ending.
  bool is_alive() const { return has_processes && !end_by; }

  /// It has greeted, measures nothing, and is to serve: it may load models and answer canaries.
  bool is_up() const { return is_alive() && is_greeted && !is_probing && goal == GroupGoal::Serve; }

  /// It may be given texts, as far as its processes go; whether it has a model for them is another
  /// question.
  bool is_serving() const { return is_up() && !is_quarantined; }

  /// Why it rests, for who may resume it: "drained; the driver reported XID 48 (1 times)".
  std::string drained_reason() const { return fault ? "drained; " + *fault : "drained"; }

  /// The state as it is shown. models: what ModelTable says of the group.
  GroupState state(ModelsTogether models) const;
};

}  // namespace muster

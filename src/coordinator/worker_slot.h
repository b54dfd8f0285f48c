#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "coordinator/device_blame.h"
#include "coordinator/device_health.h"
#include "coordinator/fleet.h"
#include "coordinator/load_trial.h"
#include "coordinator/restart_policy.h"
#include "coordinator/token_budget.h"
#include "coordinator/worker_process.h"

namespace muster {

/// What a worker has been sent and has not answered.
struct InFlight {
  std::uint64_t frame = 0;             // the frame's id
  std::optional<DispatchBatch> batch;  // nullopt: a canary, a trial, or what others do by now
  ModelId model = 0;
  std::size_t text_count = 1;
  std::uint64_t token_count = 0;
  bool is_canary = false;
  bool is_trial = false;  // of a LoadTrial
  TimePoint sent_at{};
  std::optional<TimePoint> running_since;  // a lane is free for it
};

/// A batch that a live worker failed at, while its canary is asked (device_blame.h).
struct Accusation {
  DispatchBatch batch;
  Error error{ErrorKind::Internal, ""};
};

/// A model as one worker has it.
struct ModelHere {
  FleetModelStatus status;
  bool awaits_canary = false;        // loaded, and not believed yet
  std::optional<LoadTrial> trial{};  // its canary was right; what it costs is being measured
  bool is_leaving = false;           // to be unloaded when the worker has no batch of it any more
  std::optional<TimePoint> canary_at;
};

/// Why the fleet ends a worker itself.
enum class EndReason : std::uint8_t {
  None,      // it ended by itself
  Operator,  // drained, or started again by an operator
  Health,    // it hung, lied, failed or stayed slow
  Fault,     // it does not keep to the protocol
};

enum class Goal : std::uint8_t { Serve, Drain, Restart };

/// One device and the worker that owns it at the moment.
///
/// Owned by the fleet's loop.
struct WorkerSlot {
  explicit WorkerSlot(std::uint64_t batch_tokens, bool gives_up)
      : budget(batch_tokens), restarts(gives_up) {}

  Device device;
  double weight = 1;
  DispatchDevice readings;

  std::unique_ptr<WorkerProcess> process;
  std::uint32_t serial = 0;  // of the process: events of an earlier one are passed over
  bool is_write_watched = false;
  bool is_greeted = false;
  bool is_probing = false;
  bool was_ready = false;  // this process has had a model
  TimePoint last_sign{};   // of life, while it starts, loads or probes
  EndReason end_reason = EndReason::None;
  std::optional<TimePoint> end_by;       // it is ending; then it is killed
  std::optional<TimePoint> stuck_since;  // it was killed then, and has not ended
  bool is_stuck = false;                 // that was told
  std::optional<TimePoint> restart_at;   // no process; waits for its back-off
  bool is_given_up = false;
  std::optional<Error> load_error;  // why it was given up, where it could not load a model
  std::optional<Accusation> accusation;
  DeviceBlame blame;
  bool is_at_fault = false;  // its worker is ended for that

  Goal goal = Goal::Serve;
  bool is_asked_for = false;  // that it rests or starts again; until it ends otherwise
  TimePoint drain_until{};
  bool is_quarantined = false;
  std::optional<SlowQuarantine> slow;  // quarantined, and the worker lives
  bool was_slow = false;               // that was the reason, also while it starts again
  struct {
    ModelId model = 0;
    bool is_in_time = false;
  } slow_canary;  // the newest one
  std::string reason;

  std::string engine_class;
  std::uint32_t lane_count = 1;
  TokenBudget budget;
  std::deque<InFlight> in_flight;  // oldest first: the first `lane_count` are running
  std::map<ModelId, ModelHere> models;
  DeviceHealth health;
  RestartPolicy restarts;
  FleetDeviceStatus total;
  std::optional<TimePoint> first_ready_at;

  bool is_alive() const { return process && !end_by; }
  bool is_loading() const;
  bool has_ready_model() const;
  /// None is to be loaded, loads or waits for its canary.
  bool has_settled_models() const;
  /// Takes no work, and has ended so often that its back-off has reached a second.
  bool is_failing() const;
  /// May be given work now.
  bool is_eligible() const;
  std::size_t slot_count() const { return 2 * std::size_t{lane_count}; }
  bool has_room() const { return in_flight.size() < slot_count(); }
  bool has_in_flight(ModelId model) const;
  bool has_canary_in_flight(ModelId model) const;
  /// How long the oldest running batch has been running.
  Duration running(TimePoint now) const;
  FleetState state() const;
};

}  // namespace muster

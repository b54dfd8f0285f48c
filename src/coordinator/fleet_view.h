#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "scheduler/dispatcher.h"
#include "spec/device.h"
#include "spec/serving.h"

namespace muster {

/// What a worker group does now.
enum class GroupState : std::uint8_t {
  Starting,     // its processes greet or load
  Ready,        // takes work
  Quarantined,  // it hung, was far slower than its own calibration, gave a wrong canary, or its
                // driver reported a fault
  Draining,     // ends what it has
  Drained,      // by an operator; no process runs
  Restarting,   // waits for its back-off, or with its process for memory
  GivenUp,      // by a job, for good; by a server, which cannot load a model there, and not for
                // want of memory, until it is started again or has another model
  Idle,         // no model is to be on it yet; no process runs
};

/// "starting", "ready", "quarantined", "draining", "drained", "restarting", "given up", "idle".
std::string_view group_state_name(GroupState state);

/// Of a model on a group; Drained is said of a served model alone, all of whose groups are to rest.
enum class ModelState : std::uint8_t { Absent, Loading, Ready, Failed, Drained };

/// "absent", "loading", "ready", "failed", "drained".
std::string_view model_state_name(ModelState state);

/// A model as one group has it.
struct GroupModelStatus {
  ModelState state = ModelState::Absent;
  std::string reason;                     // of Failed, and of one that waits for memory
  std::optional<ErrorKind> failure_kind;  // of Failed; nullopt: it is not
  std::uint32_t dim = 0;
  std::uint64_t weights_bytes = 0;    // as its worker counts them; 0: not counted
  std::uint64_t load_peak_bytes = 0;  // the most beside them while it loaded
  /// It takes no work until there is memory for its load or its canary, which are tried again.
  bool waits_for_memory = false;
};

/// What came of asking one group for its canary.
struct CanaryResult {
  std::size_t group = 0;
  bool is_well = false;
  std::string reason;             // when not: "no answer in 1.0 s", "another vector than before"
  std::optional<double> seconds;  // from asking to the answer
};

/// One process of a group and the device that it owns.
struct MemberStatus {
  Device device;
  std::optional<pid_t> pid;  // nullopt: it does not run
};

/// One worker group as it is now. Until a group has more members than one, its users call it by the
/// name of its device.
struct GroupStatus {
  std::string name;                   // of the leader's device
  std::vector<MemberStatus> members;  // the leader first
  GroupState state = GroupState::Starting;
  std::string reason;       // why it is quarantined, drained, restarting or given up, or which of
                            // its models it lacks
  bool is_to_rest = false;  // an operator has drained it: no work until it is resumed
  /// Its lives end one after the other, or it is given up for good: nobody should wait for it.
  bool is_failing = false;
  /// What it does an operator has asked for: it rests, or it starts again.
  bool is_asked_for = false;
  std::string engine_class;
  std::uint32_t lane_count = 0;
  std::map<ModelId, GroupModelStatus> models;
  std::uint64_t text_count = 0;
  std::uint64_t token_count = 0;
  std::uint64_t batch_count = 0;
  std::uint64_t failed_batch_count = 0;
  double engine_seconds = 0;  // summed over lanes, divided by their number
  double ready_seconds = 0;   // since it was ready for the first time
  std::uint32_t restart_count = 0;
  std::uint32_t quarantine_count = 0;
  std::uint64_t in_flight_texts = 0;
  std::uint64_t in_flight_tokens = 0;
  std::uint64_t token_budget = 0;  // below batch_tokens after an out-of-memory, until it has grown
  std::uint64_t activation_peak_bytes = 0;
  std::optional<double> tokens_per_second;  // measured; of all its lanes
  std::optional<CanaryResult> last_canary;
  std::string last_words;  // how its processes ended last

  const Device& device() const { return members.front().device; }
  std::optional<pid_t> pid() const { return members.front().pid; }
};

/// All that a fleet shows of itself, as it was at one moment. It is a copy: nothing in it changes
/// afterwards, and whoever has it may keep it or hand it to another thread.
struct FleetView {
  std::vector<GroupStatus> groups;              // in the order of FleetOptions::devices
  Strategy strategy = Strategy::Auto;           // by which texts find devices
  std::array<QueuedWork, kLaneCount> queues{};  // by Lane
  std::size_t pending_count = 0;                // texts that wait or are with a device
  std::optional<Duration> predicted_drain;  // until all that waits or runs is done; nullopt: not
                                            // known yet
  std::vector<Decision> decisions;          // the newest, oldest first

  std::uint64_t queued_text_count() const;
  std::uint64_t queued_token_count() const;
};

}  // namespace muster

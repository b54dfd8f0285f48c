#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "coordinator/fleet_rules.h"
#include "coordinator/group_processes.h"
#include "coordinator/model_table.h"
#include "coordinator/silence.h"
#include "coordinator/step_signal.h"
#include "coordinator/worker_groups.h"

namespace muster {

/// Those who use the groups that a WorkerSupervisor keeps alive: the fleet, or a test's fake. Each
/// call may call the supervisor again.
///
/// Threads: called on the fleet's loop.
class GroupClient {
 public:
  virtual ~GroupClient() = default;

  /// A frame of a leader that is not about its start (Hello, Verdict) has come.
  ///
  /// Errors: Corrupt for one that does not fit: the group is ended for it.
  virtual Status on_frame(std::size_t group, const FrameHeader& header,
                          std::span<const std::byte> payload) = 0;

  /// Whether it takes work may have changed.
  virtual void on_state(std::size_t group) = 0;

  /// What the group has been sent will not be answered, or nobody waits for the answers any more:
  /// it is for others.
  virtual void on_lost(std::size_t group, const GroupLoss& loss) = 0;

  /// Its processes are gone, and what they had loaded with them. It comes before `on_lost`.
  virtual void on_ended(std::size_t group) = 0;

  /// Whether it is given work: it serves, has a model, and no failed batch is held against it.
  virtual bool is_eligible(std::size_t group) const = 0;

  /// What a batch of so many tokens is predicted to take, by the batches that the group has done;
  /// nullopt before the first one.
  virtual std::optional<Duration> predict(std::size_t group, ModelId model,
                                          std::uint64_t token_count) const = 0;
};

/// Owns the lives and the health of all worker groups: starts them, hears their greetings, notices
/// death, silence (beyond what a batch is predicted to take) and slowness (beyond the group's own
/// calibration), quarantines and drains them, ends them, and starts them again. It knows frames,
/// but neither texts nor what a model is for.
///
/// Threads: not thread-safe; owned by the fleet's loop.
class WorkerSupervisor final : public WorkerGroups, public GroupProcessEvents {
 public:
  struct Options {
    std::vector<std::vector<Device>> groups;  // the devices of each
    std::string worker_program;               // for messages
    std::string build;                        // what a worker's Hello must say
    bool gives_up = true;                     // as FleetOptions::gives_up
    std::vector<std::size_t> idle = {};       // as FleetOptions::idle
    Duration drain_limit{};                   // as FleetOptions::drain_limit
  };

  /// What the supervisor works with; all of it outlives it.
  struct Parts {
    GroupProcesses& processes;
    GroupClient& client;
    const ModelTable& models;
    StepSignal& signal;
    const Clock& clock;
    /// A sentence for people, about a group.
    std::function<void(const std::string& sentence, std::size_t group)> on_notice;
    /// Whether a process computes, or would if it had a CPU.
    std::function<bool(pid_t)> is_runnable;
  };

  WorkerSupervisor(Options options, Parts parts);

  /// Starts every group that is not to be idle; they greet later.
  ///
  /// Errors: those of GroupProcesses::start.
  Status start();

  // What models and work in flight see.
  const GroupLife& life(std::size_t group) const override { return groups_[group].life; }
  const SentFrames& sent(std::size_t group) const override { return groups_[group].sent; }
  GroupHealth& health(std::size_t group) override { return groups_[group].health; }
  void tell(std::size_t group, MessageType type, std::vector<std::byte> payload) override;
  std::uint64_t send(std::size_t group, SentFrame frame, std::vector<std::byte> payload) override;
  void convict(std::size_t group, const std::string& reason) override;

  // What the processes do.
  Status on_frame(std::size_t group, std::size_t member, const FrameHeader& header,
                  std::span<const std::byte> payload) override;
  Status on_broken(std::size_t group, const Error& error) override;
  void on_stream_end(std::size_t group, const std::optional<WorkerDeath>& death) override;
  void on_exit(std::size_t group) override;
  void on_line(std::size_t group, const std::string& line) override;

  // Time.

  /// A pause of the whole program (Ctrl-Z, a laptop that slept) is nobody's silence. due: when the
  /// loop should have come back at the latest.
  void forgive_pause(TimePoint now, TimePoint due);

  /// Restarts that are due, processes that were to end, silent and slow groups, quarantines.
  ///
  /// Errors: with `gives_up` those of starting a group again.
  Status check_time(TimePoint now);
  void finish_drain(std::size_t group, TimePoint now);

  /// A group that is quarantined for slowness is let back rather than that a model has none.
  void release_last();

  TimePoint next_deadline(TimePoint now) const;

  // What its users report and ask for.

  /// The group computes what the frame asked for no more. nullopt: it has none of this id.
  std::optional<SentFrame> take_sent(std::size_t group, std::uint64_t id);

  /// It has loaded a model and has so many lanes, or could not load one (lane_count 0). For what
  /// ran beside the load the time of the load does not count, and what was before does: a load that
  /// is tried again and again hides no batch that hangs.
  void on_load_answered(std::size_t group, std::uint32_t lane_count);

  /// A model of the group has become ready.
  void on_model_ready(std::size_t group);

  /// A canary was right. is_in_time: it took no longer than it should.
  void on_right_canary(std::size_t group, bool is_in_time);

  /// Ends a group that is alive: what it has is lost, and it starts again.
  void end_group(std::size_t group, EndReason why, const std::string& reason, WorkerEnd end);

  /// It is not started again. load_error: why, where it could not load a model.
  void give_up(std::size_t group, const std::string& reason, std::optional<Error> load_error = {});

  /// As in FleetAdmin.
  void drain(std::size_t group);
  void resume(std::size_t group);
  void restart(std::size_t group);
  void wake(std::size_t group);
  void set_fault(std::size_t group, const std::optional<std::string>& fault);

  /// As FleetLoop::stop.
  double stop();

  // Measuring precisions (Fleet::probe).
  void probe(std::size_t group, const Probe& probe);
  void on_verdict(std::size_t group, Result<ProbeVerdict> verdict);
  std::optional<Result<ProbeVerdict>> take_verdict();

  // What is shown.
  void notice(std::size_t group, const std::string& sentence) const;
  void describe(std::size_t group, GroupStatus& status) const;
  /// Deaths in a row before its processes were ready.
  std::uint32_t failed_start_count(std::size_t group) const {
    return groups_[group].health.restarts.failed_start_count();
  }
  bool are_all_given_up() const;

 private:
  struct Group {
    GroupLife life;
    SentFrames sent;
    GroupHealth health;
    std::vector<pid_t> pids;           // by member; empty: it has no processes
    std::vector<bool> have_greeted{};  // by member
    TimePoint started_at{};
    std::uint32_t load_count = 0;  // loads that it was asked for and has not answered
    TimePoint loading_since{};     // the first of them, or the answer to the one before
  };

  // worker_supervisor.cpp
  Status start_group(std::size_t index);
  Status on_hello(std::size_t index, std::size_t member, std::span<const std::byte> payload);

  // worker_ends.cpp
  void close(std::size_t index);
  void lose(std::size_t index, WorkerEnd end, const std::string& reason);
  void end_life(std::size_t index, const WorkerDeath& death);
  void plan_restart(std::size_t index, const WorkerDeath& death, bool was_ready,
                    std::size_t frame_count);
  Status start_again(std::size_t index, TimePoint now);
  void kill_again(std::size_t index, TimePoint now);
  void begin_drain(std::size_t index);

  // worker_health.cpp
  std::optional<Silence> silence(std::size_t index) const;
  Silence batch_silence(std::size_t index, const SentFrame& frame) const;
  bool extend_silence(std::size_t index, TimePoint now);
  Duration batch_allowance(std::size_t index, const SentFrame& frame) const;
  void check_silence(std::size_t index, TimePoint now);
  void check_slowness(std::size_t index, TimePoint now);
  void quarantine(std::size_t index, const std::string& reason);
  void watch_quarantine(std::size_t index, TimePoint now);
  void end_quarantine(std::size_t index, const std::string& why);
  void start_after_fault(std::size_t index);
  void show_fault_of_drained(std::size_t index);
  bool has_stand_in(std::size_t index, bool must_be_fast) const;
  TimePoint group_deadline(std::size_t index, TimePoint now) const;

  const Options options_;
  const Parts parts_;
  std::vector<Group> groups_;
  std::optional<Result<ProbeVerdict>> verdict_;
  std::uint64_t next_frame_ = 1;
  std::optional<Duration> longest_greeting_;  // of all groups, from their start; nullopt: none yet
  double reaped_cpu_seconds_ = 0;
};

}  // namespace muster

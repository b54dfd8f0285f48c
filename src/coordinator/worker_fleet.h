#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "coordinator/fleet.h"
#include "coordinator/group_runner.h"
#include "coordinator/in_flight_work.h"
#include "coordinator/model_registry.h"
#include "coordinator/model_table.h"
#include "coordinator/step_signal.h"
#include "coordinator/worker_supervisor.h"

namespace muster {

/// The inside of a Fleet: its loop, and the three owners with what passes between them. It has no
/// state of its own but that of the loop.
///
/// A step has two halves. First comes what has happened: frames, ends, times; whoever hears of it
/// changes its own state alone. Then `settle` does what follows for the groups (loads, drains,
/// canaries, batches), outside of every callback. Nothing follows from a part of a frame: where
/// there is nothing else, and its time has not come, a step ends with reading it.
///
/// The lone query. On an idle machine one text's answer takes a millisecond, of which waking
/// threads is a tenth. Four steps save that, and only while nothing else is going on:
///   `expect` tells the group that had the last batch to poll for 0.5 ms (at most once in that
///     time, only while no text is known and the group has nothing in flight);
///   the worker's reader computes that batch itself, if its only lane is idle (worker/worker.cpp);
///   `read_only_answer` reads the answer to the only batch without asking epoll what has come;
///   `let_worker_sleep` yields a core that parent and worker share.
/// None of them changes an answer, an order or a record: each falls back to the usual way at once.
/// The server calls `expect` when the head of a request for vectors has come. The setting
/// `low_latency` (FleetOptions::is_low_latency) switches all four off: a worker that is not told to
/// expect a batch neither polls nor computes on its reader's thread.
///
/// Threads: not thread-safe; owned by one loop.
class WorkerFleet final : public FleetLoop,
                          public FleetAdmin,
                          private GroupClient,
                          private ModelEvents {
 public:
  WorkerFleet(FleetOptions options, FleetEvents events, const Clock& clock);

  /// As Fleet::start.
  Status start() { return supervisor_.start(); }
  Result<std::vector<std::string>> wait_for_greetings(const std::function<bool()>& cancelled);
  Result<MeasuredPrecisions> probe(const Probe& probe, const std::function<bool()>& cancelled);

  InFlightWork& work() { return work_; }
  ModelRegistry& models() { return models_; }
  FleetView view() const;
  std::vector<GroupStatus> groups() const;

  // FleetLoop
  Status step(Duration timeout) override;
  void place_submitted() override;
  int wait_fd() const override { return runner_.wait_fd(); }
  TimePoint next_deadline() const override;
  double stop() override { return supervisor_.stop(); }

  // FleetAdmin
  void drain(std::size_t group) override { supervisor_.drain(group); }
  void resume(std::size_t group) override { supervisor_.resume(group); }
  void restart(std::size_t group) override { supervisor_.restart(group); }
  void wake(std::size_t group) override { supervisor_.wake(group); }
  void set_fault(std::size_t group, const std::optional<std::string>& fault) override {
    supervisor_.set_fault(group, fault);
  }
  void check(Duration limit,
             std::function<void(const std::vector<CanaryResult>&)> on_done) override {
    models_.check(limit, std::move(on_done));
  }

 private:
  // GroupClient: what groups do (fleet_frames.cpp)
  Status on_frame(std::size_t group, const FrameHeader& header,
                  std::span<const std::byte> payload) override;
  void on_state(std::size_t group) override { work_.update_group(group); }
  void on_lost(std::size_t group, const GroupLoss& loss) override { work_.on_lost(group, loss); }
  void on_ended(std::size_t group) override;
  bool is_eligible(std::size_t group) const override { return work_.is_eligible(group); }
  std::optional<Duration> predict(std::size_t group, ModelId model,
                                  std::uint64_t token_count) const override {
    return work_.predict(group, model, token_count);
  }

  // ModelEvents: what their models and canaries show (fleet_frames.cpp)
  void on_models_changed(std::size_t group) override;
  void on_model_ready(std::size_t group) override;
  void on_right_canary(std::size_t group, ModelId model, std::optional<bool> is_in_time) override;
  void on_disputed_canary(std::size_t group, const std::string& reason) override;
  void on_unloaded(ModelId model) override { work_.on_unloaded(model); }
  bool is_accused(std::size_t group) const override { return work_.is_accused(group); }

  // fleet_frames.cpp
  Status on_ready(std::size_t group, std::span<const std::byte> payload);
  Status on_load_failed(std::size_t group, std::span<const std::byte> payload);
  void on_full(std::size_t group, ModelId model, const std::string& sentence);
  bool is_last(std::size_t group) const;
  Status on_rows(std::size_t group, std::uint64_t id, std::span<const std::byte> payload);
  Status on_failed(std::size_t group, std::uint64_t id, std::span<const std::byte> payload);
  void let_worker_sleep(std::size_t group) const;
  Error protocol_error(std::size_t group, const std::string& what) const;

  // worker_fleet.cpp
  Status wait(Duration timeout);
  Result<bool> read_only_answer();
  Status check_time();
  void settle();
  void notice(const std::string& sentence, std::size_t group) const;
  bool is_waited_for(std::size_t group) const;
  Error no_group_error() const;
  Error no_measure_error(const std::string& last_end) const;
  TimePoint time_of_next_step() const;

  const FleetOptions options_;
  const FleetEvents events_;
  const Clock& clock_;
  StepSignal signal_;
  ModelTable table_;
  GroupRunner runner_;
  WorkerSupervisor supervisor_;
  InFlightWork work_;
  ModelRegistry models_;
  TimePoint due_ = TimePoint::max();  // when the next step is due at the latest
};

}  // namespace muster

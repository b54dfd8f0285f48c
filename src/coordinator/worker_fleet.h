#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "coordinator/canary_book.h"
#include "coordinator/fleet.h"
#include "coordinator/fleet_rules.h"
#include "coordinator/silence.h"
#include "coordinator/worker_slot.h"

namespace muster {

/// The fleet of processes behind `Fleet`. Frames and ends of workers change the slots; what follows
/// from that (loads, drains, canaries, batches) is done by `settle`, outside of every callback.
///
/// The lone query. On an idle machine one text's answer takes a millisecond, of which waking
/// threads is a tenth. Four steps save that, and only while nothing else is going on:
///   `expect` tells the worker that had the last batch to poll for 0.5 ms (at most once in that
///     time, only while no text is known and the worker has nothing in flight);
///   the worker's reader computes that batch itself, if its only lane is idle (worker/worker.cpp);
///   `read_only_answer` reads the answer to the only batch without asking epoll what has come;
///   `let_worker_sleep` yields a core that parent and worker share.
/// None of them changes an answer, an order or a book: each falls back to the usual way at once.
/// There is no setting for them: without `expect` the first two do not happen, and a server that is
/// never idle does not take the others.
///
/// Threads: not thread-safe; owned by one loop.
class WorkerFleet final : public Fleet {
 public:
  WorkerFleet(FleetOptions options, FleetEvents events, const Clock& clock);
  ~WorkerFleet() override;
  Status start_workers();

  Result<std::vector<std::string>> wait_for_greetings(
      const std::function<bool()>& cancelled) override;
  Result<ProbeVerdict> probe(const Probe& probe, const std::function<bool()>& cancelled) override;
  void load(ModelId model, FleetModel what) override;
  void unload(ModelId model) override;
  void submit(FleetItem item) override;
  void place_submitted() override;
  void expect() override;
  void lift(ItemKey key, FlowId flow) override;
  bool cancel(ItemKey key) override;
  void set_dispatch(DispatchOptions options) override;
  void set_readings(std::size_t device, const DispatchDevice& readings) override;
  void drain(std::size_t device) override;
  void resume(std::size_t device) override;
  void restart(std::size_t device) override;
  void check(Duration limit, std::function<void(std::vector<CanaryResult>)> on_done) override;
  std::map<std::string, std::vector<float>> canary_rows(ModelId model) const override;
  Status step(Duration timeout) override;
  int wait_fd() const override { return epoll_.get(); }
  TimePoint next_deadline() const override;
  std::size_t pending_count() const override { return texts_.size() + refused_.size(); }
  bool is_hungry() const override;
  const Dispatcher& dispatcher() const override { return dispatcher_; }
  std::vector<FleetDeviceStatus> status() const override;
  std::optional<TimePoint> first_ready_at() const override { return first_ready_at_; }
  std::uint32_t dim(ModelId model) const override;
  double stop() override;

 private:
  struct Model {
    FleetModel what;
    CanaryBook book;
    std::uint32_t dim = 0;
  };
  struct Text {
    FleetItem item;
    std::uint32_t fault_count = 0;                      // workers that failed at it
    std::pair<std::size_t, std::uint32_t> failed_in{};  // the last one: device, serial
    std::optional<std::size_t> not_finite_on;           // its row was not, on this device
  };
  struct Check {
    TimePoint begun_at{};
    TimePoint until{};
    std::vector<CanaryResult> results;
    std::set<std::pair<std::size_t, ModelId>> open;  // answers that are still to come
    std::function<void(std::vector<CanaryResult>)> on_done;
  };

  // worker_fleet.cpp: the loop
  Status start_worker(WorkerSlot& slot);
  void watch_writes(WorkerSlot& slot);
  void wake();
  Result<bool> read_only_answer();
  Status wait(Duration timeout);
  Status on_event(WorkerSlot& slot, std::uint32_t part, std::uint32_t events);
  Status read_frames_of(WorkerSlot& slot);
  Status on_fault(WorkerSlot& slot, const Error& error);
  void read_stderr_of(WorkerSlot& slot);
  Status check_time();
  void settle();
  void forgive_pause(TimePoint now, TimePoint due);
  Error no_device_error() const;
  std::size_t index_of(const WorkerSlot& slot) const;
  void notice(const WorkerSlot& slot, const std::string& message);
  void changed();

  // fleet_frames.cpp: what workers say
  Status on_frame(WorkerSlot& slot, const FrameHeader& header, std::span<const std::byte> payload);
  Status on_hello(WorkerSlot& slot, std::span<const std::byte> payload);
  Status on_ready(WorkerSlot& slot, std::span<const std::byte> payload);
  Status on_load_failed(WorkerSlot& slot, std::span<const std::byte> payload);
  void let_worker_sleep(const WorkerSlot& slot) const;
  Status on_rows(WorkerSlot& slot, std::uint64_t id, std::span<const std::byte> payload);
  Status on_failed(WorkerSlot& slot, std::uint64_t id, std::span<const std::byte> payload);
  void deliver(WorkerSlot& slot, DispatchBatch batch, const Rows& rows);
  std::optional<InFlight> take_in_flight(WorkerSlot& slot, std::uint64_t id);
  Error protocol_error(const WorkerSlot& slot, const std::string& what) const;

  // fleet_blame.cpp: whose fault a failed batch is
  void on_batch_failed(WorkerSlot& slot, DispatchBatch batch, const Error& error);
  void on_not_finite(WorkerSlot& slot, DispatchBatch batch);
  void accuse(WorkerSlot& slot, DispatchBatch batch, const Error& error);
  void acquit(WorkerSlot& slot);
  void try_elsewhere(WorkerSlot& slot, DispatchBatch batch, const Error& error);
  void return_failed(WorkerSlot& slot, DispatchBatch batch, const Error& error);
  void convict(WorkerSlot& slot, const std::string& reason);
  void blame_outdone(const WorkerSlot& slot, const DispatchBatch& batch);

  // fleet_ends.cpp: how workers end, by themselves or by an operator
  void end_worker(WorkerSlot& slot, EndReason why, const std::string& reason, WorkerEnd end);
  void close_worker(WorkerSlot& slot);
  Status on_worker_end(WorkerSlot& slot);
  void kill_again(WorkerSlot& slot, TimePoint now);
  void end_life(WorkerSlot& slot, const WorkerDeath& death);
  void plan_restart(WorkerSlot& slot, const WorkerDeath& death, bool was_ready,
                    std::size_t batch_count);
  void give_up(WorkerSlot& slot, const std::string& reason);
  void lose_batches(WorkerSlot& slot, WorkerEnd end, const std::string& reason);
  bool has_peer(const WorkerSlot& slot, ModelId model) const;
  void give_back(WorkerSlot& slot, DispatchBatch batch);
  void strike(WorkerSlot& slot, DispatchBatch batch, const Error& error);
  void after_return(const std::vector<WorkItem>& items, ModelId model);
  void begin_drain(WorkerSlot& slot);
  void drain_step(WorkerSlot& slot, TimePoint now);

  // fleet_work.cpp: texts
  void feed();
  void send_batch(WorkerSlot& slot, DispatchBatch batch);
  void send(WorkerSlot& slot, MessageType type, std::uint64_t id, std::vector<std::byte> payload);
  void refresh_running(WorkerSlot& slot);
  void fail_item(ItemKey key, const Error& error);
  void fail_waiting(ModelId model, const Error& error);
  void deliver_refusals();
  void sync(WorkerSlot& slot);

  // fleet_models.cpp: models and canaries
  void load_step(WorkerSlot& slot);
  void drop_leaving_models(WorkerSlot& slot);
  void on_model_loaded(WorkerSlot& slot, ModelId id);
  void believe(WorkerSlot& slot, ModelId id);
  bool has_canary(ModelId id) const;
  void send_canary(WorkerSlot& slot, ModelId id);
  void begin_trial(WorkerSlot& slot, ModelId id);
  void send_trial(WorkerSlot& slot, ModelId id, const LoadTrial::Round& round);
  void on_trial_too_large(WorkerSlot& slot, const InFlight& sent);
  void on_trial_batch(WorkerSlot& slot, const InFlight& sent, Duration engine);
  void send_due_canaries(WorkerSlot& slot, TimePoint now);
  void on_canary_row(WorkerSlot& slot, const InFlight& canary, std::span<const std::byte> row,
                     Duration engine);
  void on_canary_failed(WorkerSlot& slot, const InFlight& canary, const Error& error);
  void on_right_canary(WorkerSlot& slot, ModelId id);
  void apply(ModelId id, const std::vector<CanaryVerdict>& verdicts);
  void answer_checks(std::size_t device, ModelId model, bool is_well, const std::string& reason,
                     std::optional<double> seconds);
  void finish_checks(TimePoint now);

  // fleet_health.cpp: silent, slow, quarantined
  std::optional<Silence> silence(const WorkerSlot& slot) const;
  Duration batch_allowance(const WorkerSlot& slot, const InFlight& sent) const;
  void judge_from_now(WorkerSlot& slot);
  void check_silence(WorkerSlot& slot, TimePoint now);
  void check_slowness(WorkerSlot& slot, TimePoint now);
  void quarantine(WorkerSlot& slot, const std::string& reason);
  void watch_quarantine(WorkerSlot& slot, TimePoint now);
  void end_quarantine(WorkerSlot& slot, const std::string& why);
  void release_last();
  bool has_well_peer(const WorkerSlot& slot, bool must_be_fast) const;
  TimePoint slot_deadline(const WorkerSlot& slot, TimePoint now) const;

  const FleetOptions options_;
  const FleetEvents events_;
  const Clock& clock_;
  UniqueFd epoll_;
  UniqueFd wake_;              // an eventfd in it: `step` has something to do
  bool is_awake_ = false;      // whoever looks at `next_deadline` is told so
  bool is_wake_told_ = false;  // whoever waits for `wait_fd`, too
  bool is_in_step_ = false;    // settles soon: no need to be woken
  std::vector<WorkerSlot> slots_;
  Dispatcher dispatcher_;
  std::map<ModelId, Model> models_;
  std::unordered_map<ItemKey, Text> texts_;         // not yet answered
  std::vector<std::pair<ItemKey, Error>> refused_;  // told by the next step
  std::deque<Check> checks_;
  std::optional<Result<ProbeVerdict>> verdict_;
  std::optional<TimePoint> first_ready_at_;
  TimePoint due_;  // when the next step is due at the latest
  std::uint64_t next_frame_ = 1;
  std::size_t last_fed_ = 0;  // the device that had the last batch
  TimePoint expected_at_{};   // the last time a worker was told to expect one
  bool has_changed_ = false;
  bool has_ever_greeted_ = false;
  double reaped_cpu_seconds_ = 0;
};

}  // namespace muster

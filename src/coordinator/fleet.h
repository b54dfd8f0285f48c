#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "coordinator/fleet_view.h"
#include "coordinator/text_ids.h"
#include "scheduler/dispatcher.h"
#include "spec/device.h"
#include "spec/serving.h"
#include "wire/messages.h"

namespace muster {

class WorkerFleet;

struct FleetOptions {
  std::vector<Device> devices;  // a worker group each, of one member
  std::filesystem::path worker_program;
  std::filesystem::path torch_root;
  std::string build;                  // what a worker's Hello must say
  std::uint32_t batch_tokens = 4096;  // upper bound of a batch
  DispatchOptions dispatch;
  std::map<std::size_t, double> weights;  // by device; 1 where nothing stands
  /// Groups that start no process before a model is to be on them (or FleetAdmin::wake).
  std::vector<std::size_t> idle = {};
  /// A group whose processes cannot start, or that fails or gives wrong vectors, is given up after
  /// three tries, one that cannot load a model at once (the last one waits for memory for half a
  /// minute, if that is all it lacks), and with the last group `step` ends with an error: right for
  /// one job. A server tries for ever, with a back-off of 30 s at most; a model that cannot be
  /// loaded is a state, in which only want of memory is waited for (memory_wait.h).
  bool gives_up = true;
  bool is_low_latency = true;  // the shortcuts of a lone query (worker_fleet.h)
  Duration canary_period{};    // between two canaries of an idle, well group; 0: none by itself
  Duration drain_limit = std::chrono::seconds(30);  // of `drain` and `restart`, then the work goes
                                                    // back to the others
};

/// A model as the workers are told of it.
struct FleetModel {
  Load load;                          // `model`, `cpus` and the device kind are filled in for each
  std::vector<std::size_t> devices;   // the groups that are to have it; empty: all
  std::vector<std::uint32_t> canary;  // ids of the canary text; empty: no canary
  /// Canary rows that an earlier run found right, by engine class.
  std::map<std::string, std::vector<float>> canary_rows;
  /// After its first right canary a group measures what batches of several sizes cost
  /// (load_trial.h), before it gets work: a server knows its speed before the first request. Needs
  /// a canary. About 0.1 s; a job learns the same from its first batches.
  bool is_measured_at_load = false;
};

/// A text for the fleet.
struct FleetItem {
  DispatchItem item;
  TextIds ids;
  std::uint32_t first_segment = 0;  // of a pair: how many ids are of segment 0; 0: all
};

/// What the owner of the texts hears, on the thread that calls `step`. It may call the fleet from
/// within.
struct FleetEvents {
  /// The row of a text: [dim] float32 as bytes (they may be unaligned), all of them finite.
  std::function<void(ItemKey, std::span<const std::byte>, std::size_t group)> on_row;
  /// This text alone cannot be computed; all others are unaffected.
  std::function<void(ItemKey, const Error&)> on_item_failed;
  /// A sentence for people; group is set when it is about one (or its worker said it).
  std::function<void(const std::string&, std::optional<std::size_t> group)> on_notice;
  /// A group or a model changed its state.
  std::function<void()> on_change;
  /// A group gave a wrong vector for a canary, or one of two did: what it answered since it was
  /// last right may be wrong as well. May be empty.
  std::function<void(std::size_t group)> on_wrong_canary = {};
};

/// What Fleet::probe has measured, and on which kind of device.
struct MeasuredPrecisions {
  ProbeVerdict verdict;
  std::string processor;     // the model name of the device that answered
  std::string engine_class;  // of its worker
};

/// The event loop's side of a fleet: its owner calls `step` whenever `wait_fd` is readable or
/// `next_deadline` has come, or in a row with a timeout.
class FleetLoop {
 public:
  virtual ~FleetLoop() = default;

  /// Waits up to `timeout` for something to happen and handles it.
  ///
  /// Errors: Unsupported for a worker of another build or protocol before any has greeted; with
  /// `gives_up` also Unavailable when every group was given up, or what the first one said when
  /// none can load the model.
  virtual Status step(Duration timeout) = 0;

  /// Gives texts that wait to the groups that have room, without a look at what has come from them:
  /// `wait_fd` reports that.
  virtual void place_submitted() = 0;

  /// Readable when `step` has something to do (an epoll descriptor).
  virtual int wait_fd() const = 0;
  virtual TimePoint next_deadline() const = 0;

  /// Ends all workers: closes their sockets, waits a second for all of them, kills those that are
  /// left and waits a second more. What a driver holds even then is reported by a notice and left
  /// to init. Returns the CPU seconds of all workers of this run.
  virtual double stop() = 0;
};

/// The texts' side of a fleet. A text that was submitted leaves by `on_row`, `on_item_failed` or
/// `cancel`, and only once.
class FleetTexts {
 public:
  virtual ~FleetTexts() = default;

  /// Given to a group by `place_submitted` or the next step, which the caller takes once all that
  /// came together is here; `wait_fd` does not report it, `next_deadline` does.
  virtual void submit(FleetItem item) = 0;

  /// A text is about to be submitted: while none is here, the group that had the last batch is told
  /// to await one without sleeping (wire/messages.h, kExpectTime), once in that time at most.
  virtual void expect() = 0;

  /// Somebody waits for this text now who may wait in the interactive lane; as Dispatcher::lift.
  virtual void lift(ItemKey key, FlowId flow) = 0;

  /// Nothing more is heard of this text; it is not computed unless a group has it already. False
  /// when it is not known.
  virtual bool cancel(ItemKey key) = 0;

  /// Texts submitted and not yet answered.
  virtual std::size_t pending_count() const = 0;
};

/// How texts find devices.
class FleetPlacement {
 public:
  virtual ~FleetPlacement() = default;

  virtual void set_dispatch(DispatchOptions options) = 0;

  /// The newest readings of a group's device, for strategies that look at them.
  virtual void set_readings(std::size_t group, const DispatchDevice& readings) = 0;

  /// What waits and runs, exactly, and what is predicted of it: for admission, call by call. Those
  /// who only show it take a FleetView.
  virtual const Dispatcher& dispatcher() const = 0;
};

/// The models' side of a fleet.
class FleetModels {
 public:
  virtual ~FleetModels() = default;

  /// Tells the groups, now and after each restart, what to load. Ids are the caller's and never
  /// used twice.
  virtual void load(ModelId model, FleetModel what) = 0;

  /// Groups forget the model. Texts of it that wait fail with NotFound; those with a group still
  /// come back.
  virtual void unload(ModelId model) = 0;

  /// The canary rows that are held to be right and were answered twice, by engine class, for the
  /// next run; `on_change` reports new ones.
  virtual std::map<std::string, std::vector<float>> canary_rows(ModelId model) const = 0;

  /// Of a row; 0 before the first group has the model.
  virtual std::uint32_t dim(ModelId model) const = 0;

  /// When the first group had its first model; nullopt: none has.
  virtual std::optional<TimePoint> first_ready_at() const = 0;
};

/// What an operator does to the groups of a fleet.
class FleetAdmin {
 public:
  virtual ~FleetAdmin() = default;

  /// No new work for this group; when what it has is done, its processes end.
  virtual void drain(std::size_t group) = 0;
  /// A drained group starts again.
  virtual void resume(std::size_t group) = 0;
  /// Drains, ends and starts again.
  virtual void restart(std::size_t group) = 0;

  /// One that is idle starts its processes now: a model is about to be loaded there.
  virtual void wake(std::size_t group) = 0;

  /// What the driver reports of the group's devices that spoils what they compute, or stops it; to
  /// be called when that changes. The group is quarantined, without processes, until the fault is
  /// over (nullopt), or an operator starts it again; with `gives_up` it is given up. A group that
  /// is drained stays so, ends at once, and its reason names the fault: who resumes it starts it in
  /// spite of that.
  virtual void set_fault(std::size_t group, const std::optional<std::string>& fault) = 0;

  /// Sends a canary of each loaded model to every group that runs, and reports for each group what
  /// came of it within `limit`.
  virtual void check(Duration limit,
                     std::function<void(const std::vector<CanaryResult>&)> on_done) = 0;
};

/// The worker groups of a machine and the texts in flight: a process per device that loads models,
/// computes batches, and may hang, die, slow down or give wrong vectors at any time, whose work
/// then goes to the others.
///
/// Behind the factory are three owners, each with its own state: WorkerSupervisor (processes and
/// health), ModelRegistry (models and canaries) and InFlightWork (texts and batches). Each side is
/// an interface for those who need no other.
///
/// Owner: one loop thread. Threads: not thread-safe.
class Fleet {
 public:
  /// Starts the workers; they greet during the following steps.
  ///
  /// Errors: NotFound (no worker program), ResourceExhausted.
  static Result<std::unique_ptr<Fleet>> start(FleetOptions options, FleetEvents events,
                                              const Clock& clock);

  /// Kills what still runs, and waits for it no longer than `stop` does.
  ~Fleet();

  /// Steps until every group has greeted or been given up; their engine classes without repeats, in
  /// the order of devices.
  ///
  /// Errors: Unavailable when none could start, with the last words of one; Cancelled.
  Result<std::vector<std::string>> wait_for_greetings(const std::function<bool()>& cancelled);

  /// Measures the precisions on the first device that can; where its worker ends, on another one,
  /// of its kind where there is one, which `on_notice` tells. Each has three lives for it
  /// (measuring_groups.h). Blocks in steps until the answer.
  ///
  /// Errors: Unavailable when none is left, with how the last one ended; what a device says that
  /// cannot measure; Cancelled.
  Result<MeasuredPrecisions> probe(const Probe& probe, const std::function<bool()>& cancelled);

  FleetLoop& loop();
  FleetTexts& texts();
  FleetPlacement& placement();
  FleetModels& models();
  FleetAdmin& admin();

  FleetView view() const;
  /// The groups of `view` alone.
  std::vector<GroupStatus> groups() const;

 private:
  explicit Fleet(std::unique_ptr<WorkerFleet> inside);

  std::unique_ptr<WorkerFleet> inside_;
};

}  // namespace muster

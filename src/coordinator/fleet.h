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
#include "scheduler/dispatcher.h"
#include "spec/device.h"
#include "spec/serving.h"
#include "wire/messages.h"

namespace muster {

struct FleetOptions {
  std::vector<Device> devices;
  std::filesystem::path worker_program;
  std::filesystem::path torch_root;
  std::string build;                  // what a worker's Hello must say
  std::uint32_t batch_tokens = 4096;  // upper bound of a batch
  DispatchOptions dispatch;
  std::map<std::size_t, double> weights;  // by device; 1 where nothing stands
  /// A device whose worker cannot start, or fails or lies, is given up after three tries, one that
  /// cannot load a model at once, and with the last device `step` ends with an error: right for one
  /// job. A server tries for ever, with a back-off of 30 s at most, and a model that cannot be
  /// loaded is a state.
  bool gives_up = true;
  Duration canary_period{};  // between two canaries of an idle, well worker; 0: none by itself
  Duration drain_limit = std::chrono::seconds(30);  // of `drain` and `restart`, then the work goes
                                                    // back to the others
};

/// A model as the workers are told of it.
struct FleetModel {
  Load load;                          // `model`, `cpus` and the device kind are filled in for each
  std::vector<std::size_t> devices;   // where; empty: all
  std::vector<std::uint32_t> canary;  // ids of the canary text; empty: no canary
  /// Canary rows that an earlier run found right, by engine class.
  std::map<std::string, std::vector<float>> canary_rows;
  /// After its first right canary a device measures what batches of several sizes cost
  /// (load_trial.h), before it gets work: a server knows its speed before the first request. Needs
  /// a canary. About 0.1 s; a job learns the same from its first batches.
  bool is_measured_at_load = false;
};

/// A text for the fleet.
struct FleetItem {
  DispatchItem item;
  std::vector<std::uint32_t> ids;
  std::uint32_t first_segment = 0;  // of a pair: how many ids are of segment 0; 0: all
};

/// What the owner of the texts hears, on the thread that calls `step`. It may call the fleet from
/// within.
struct FleetEvents {
  /// The row of a text: [dim] float32 as bytes (they may be unaligned).
  std::function<void(ItemKey, std::span<const std::byte>, std::size_t device)> on_row;
  /// This text alone cannot be computed; all others are unaffected.
  std::function<void(ItemKey, const Error&)> on_item_failed;
  /// A sentence for people; device is set when it is about one (or its worker said it).
  std::function<void(const std::string&, std::optional<std::size_t> device)> on_notice;
  /// A device or a model changed its state.
  std::function<void()> on_change;
  /// A device gave a wrong vector for a canary, or one of two did: what it answered since it was
  /// last right may be wrong as well. May be empty.
  std::function<void(std::size_t device)> on_wrong_canary = {};
};

enum class FleetState : std::uint8_t {
  Starting,     // the worker greets or loads
  Ready,        // takes work
  Quarantined,  // it hung, was far slower than its own calibration, or gave a wrong canary
  Draining,     // ends what it has
  Drained,      // by an operator; no worker runs
  Restarting,   // waits for its back-off
  GivenUp,
};

/// "starting", "ready", "quarantined", "draining", "drained", "restarting", "given up".
std::string_view fleet_state_name(FleetState state);

/// Of a model on a device; Drained is said of a served model alone, all of whose devices are to
/// rest.
enum class ModelState : std::uint8_t { Absent, Loading, Ready, Failed, Drained };

/// "absent", "loading", "ready", "failed", "drained".
std::string_view model_state_name(ModelState state);

struct FleetModelStatus {
  ModelState state = ModelState::Absent;
  std::string reason;  // of Failed
  std::uint32_t dim = 0;
  std::uint64_t weights_bytes = 0;    // as its worker counts them; 0: not counted
  std::uint64_t load_peak_bytes = 0;  // the most beside them while it loaded
};

struct CanaryResult {
  std::size_t device = 0;
  bool is_well = false;
  std::string reason;             // when not: "no answer in 1.0 s", "another vector than before"
  std::optional<double> seconds;  // from asking to the answer
};

/// One device as it is now.
struct FleetDeviceStatus {
  Device device;
  std::string name;
  FleetState state = FleetState::Starting;
  std::string reason;       // why it is quarantined, restarting or given up
  bool is_to_rest = false;  // an operator has drained it: no work until it is resumed
  /// Its workers end one after the other, or it is given up: nobody should wait for it.
  bool is_failing = false;
  /// What it does an operator has asked for: it rests, or it starts again.
  bool is_asked_for = false;
  std::optional<pid_t> pid;
  std::string engine_class;
  std::uint32_t lane_count = 0;
  std::map<ModelId, FleetModelStatus> models;
  std::uint64_t text_count = 0;
  std::uint64_t token_count = 0;
  std::uint64_t batch_count = 0;
  std::uint64_t failed_batch_count = 0;
  double engine_seconds = 0;  // summed over lanes, divided by their number
  double ready_seconds = 0;   // since its first worker was ready
  std::uint32_t restart_count = 0;
  std::uint32_t quarantine_count = 0;
  std::uint64_t in_flight_texts = 0;
  std::uint64_t in_flight_tokens = 0;
  std::uint64_t token_budget = 0;  // below batch_tokens after an out-of-memory, until it has grown
  std::uint64_t activation_peak_bytes = 0;
  std::optional<double> tokens_per_second;  // measured; of all its lanes
  std::optional<CanaryResult> last_canary;
  std::string last_words;  // how its worker ended last
};

/// Owns the workers and the texts in flight: spawns a process per device, loads models onto them,
/// gives batches to whoever has a free slot, notices death (end-of-file, pidfd), hanging (silence
/// beyond the predicted cost), slowness (beyond its own calibration) and lies (canary), and gives
/// the work of the dead to the living. A text leaves it only by `on_row`, `on_item_failed` or
/// `cancel`, and only once.
///
/// Owner: one loop thread, which calls `step` whenever `wait_fd` is readable or `next_deadline` has
/// come (or in a row, with a timeout).
/// Threads: not thread-safe.
class Fleet {
 public:
  /// Starts the workers; they greet during the following steps.
  ///
  /// Errors: NotFound (no worker program), ResourceExhausted.
  static Result<std::unique_ptr<Fleet>> start(FleetOptions options, FleetEvents events,
                                              const Clock& clock);

  /// Kills what still runs, and waits for it no longer than `stop` does.
  virtual ~Fleet() = default;

  /// Steps until every device has greeted or been given up; their engine classes without repeats,
  /// in the order of devices.
  ///
  /// Errors: Unavailable when none could start, with the last words of one; Cancelled.
  virtual Result<std::vector<std::string>> wait_for_greetings(
      const std::function<bool()>& cancelled) = 0;

  /// Measures the precisions on the first device that can; blocks in steps until the answer.
  virtual Result<ProbeVerdict> probe(const Probe& probe,
                                     const std::function<bool()>& cancelled) = 0;

  /// Tells the workers, now and after each restart, what to load. Ids are the caller's and never
  /// used twice.
  virtual void load(ModelId model, FleetModel what) = 0;

  /// Workers forget the model. Texts of it that wait fail with NotFound; those with a device still
  /// come back.
  virtual void unload(ModelId model) = 0;

  /// Given to a device by `place_submitted` or the next step, which the caller takes once all that
  /// came together is here; `wait_fd` does not tell of it, `next_deadline` does.
  virtual void submit(FleetItem item) = 0;

  /// Gives what waits to the devices that have room, without a look at what has come from them:
  /// `wait_fd` tells of that.
  virtual void place_submitted() = 0;

  /// A text is about to be submitted: while none is here, the worker that had the last batch is
  /// told to await one without sleeping (wire/messages.h, kExpectTime), once in that time at most.
  virtual void expect() = 0;

  /// Somebody waits for this text now who may wait in the interactive lane; as Dispatcher::lift.
  virtual void lift(ItemKey key, FlowId flow) = 0;

  /// Nothing more is heard of this text; it is not computed unless a device has it already. False
  /// when it is not known.
  virtual bool cancel(ItemKey key) = 0;

  virtual void set_dispatch(DispatchOptions options) = 0;

  /// The newest readings of a device, for strategies that look at them.
  virtual void set_readings(std::size_t device, const DispatchDevice& readings) = 0;

  /// No new work for this device; when what it has is done, its worker ends.
  virtual void drain(std::size_t device) = 0;
  /// A drained device starts again.
  virtual void resume(std::size_t device) = 0;
  /// Drains, ends and starts again.
  virtual void restart(std::size_t device) = 0;

  /// Sends a canary of each loaded model to every device that has a worker, and tells for each
  /// device what came of it within `limit`.
  virtual void check(Duration limit, std::function<void(std::vector<CanaryResult>)> on_done) = 0;

  /// The canary rows that are held to be right and were answered twice, by engine class, for the
  /// next run; `on_change` tells of new ones.
  virtual std::map<std::string, std::vector<float>> canary_rows(ModelId model) const = 0;

  /// Waits up to `timeout` for something to happen and handles it.
  ///
  /// Errors: Unsupported for a worker of another build or protocol before any has greeted; with
  /// `gives_up` also Unavailable when every device was given up, or what the first one said when
  /// none can load the model.
  virtual Status step(Duration timeout) = 0;

  /// Readable when `step` has something to do (an epoll descriptor).
  virtual int wait_fd() const = 0;
  virtual TimePoint next_deadline() const = 0;

  /// Texts submitted and not yet answered.
  virtual std::size_t pending_count() const = 0;

  /// True when some device has a free slot and nothing waits for it.
  virtual bool is_hungry() const = 0;

  virtual const Dispatcher& dispatcher() const = 0;
  virtual std::vector<FleetDeviceStatus> status() const = 0;
  virtual std::optional<TimePoint> first_ready_at() const = 0;

  /// 0 before the first worker has the model.
  virtual std::uint32_t dim(ModelId model) const = 0;

  /// Ends all workers: closes their sockets, waits a second for all of them, kills those that are
  /// left and waits a second more. What a driver holds even then is told by a notice and left to
  /// init. Returns the CPU seconds of all workers of this run.
  virtual double stop() = 0;
};

}  // namespace muster

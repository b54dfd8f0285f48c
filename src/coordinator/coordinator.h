#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "coordinator/restart_policy.h"
#include "coordinator/worker_process.h"
#include "scheduler/batch_queue.h"
#include "scheduler/cost_model.h"
#include "spec/device.h"
#include "wire/messages.h"

namespace muster {

struct CoordinatorOptions {
  std::vector<Device> devices;
  std::filesystem::path worker_program;
  std::filesystem::path torch_root;
  std::uint32_t batch_tokens = 4096;  // upper bound of a batch
  std::string build;                  // what a worker's Hello must say
};

/// What the owner of the texts hears, on the thread that calls `step`.
struct CoordinatorEvents {
  /// The vector of a text: [dim] float32 as bytes (they may be unaligned).
  std::function<void(ItemKey, std::span<const std::byte>)> on_row;
  /// This text alone cannot be embedded; all others are unaffected.
  std::function<void(ItemKey, const Error&)> on_item_failed;
  /// A sentence for people: a worker died, a device was given up.
  std::function<void(const std::string&)> on_notice;
};

/// One device as it is now.
struct WorkerStatus {
  std::string name;
  std::string state;  // "starting", "ready", "restarting", "given up"
  std::uint64_t text_count = 0;
  std::uint64_t token_count = 0;
  double engine_seconds = 0;  // summed over lanes, divided by their number
  double ready_seconds = 0;   // since its first worker was ready
  std::uint32_t restart_count = 0;
  std::uint64_t weights_bytes = 0;          // as its worker counts them; 0: not counted
  std::uint64_t load_peak_bytes = 0;        // the most beside them while it loaded
  std::uint64_t activation_peak_bytes = 0;  // and since
};

/// Owns the workers and the texts in flight: spawns a process per device, gives batches to whoever
/// has a free slot, notices death (end-of-file, pidfd) and hanging (silence beyond the predicted
/// cost), and gives the work of the dead to the living. A text leaves it only by `on_row` or
/// `on_item_failed`.
///
/// Owner: one loop thread, which calls `step` again and again.
/// Threads: not thread-safe.
class Coordinator {
 public:
  /// Starts the workers; they greet during the following steps.
  ///
  /// Errors: NotFound (no worker program), ResourceExhausted.
  static Result<std::unique_ptr<Coordinator>> start(CoordinatorOptions options,
                                                    CoordinatorEvents events, const Clock& clock);

  /// Kills what still runs.
  ~Coordinator();

  /// Steps until every device has greeted or been given up; their engine classes without repeats,
  /// in the order of devices.
  ///
  /// Errors: Unavailable when none could start, with the last words of one; Cancelled.
  Result<std::vector<std::string>> wait_for_greetings(const std::function<bool()>& cancelled);

  /// Measures the precisions on the first device that can; blocks in steps until the answer.
  Result<Verdict> probe(const Probe& probe, const std::function<bool()>& cancelled);

  /// Tells every worker, now and after each restart, what to load. `load.cpus` and the device kind
  /// are filled in for each device.
  void load(const Load& load);

  /// Takes a text to be embedded. The caller bounds how many are in at a time.
  void submit(const WorkItem& item, std::vector<std::uint32_t> ids);

  /// Waits up to `timeout` for something to happen and handles it.
  ///
  /// Errors: Unavailable when every device was given up; what a worker said when the model cannot
  /// be loaded; Corrupt or Unsupported for a worker of another build or protocol.
  Status step(Duration timeout);

  /// Texts submitted and not yet answered.
  std::size_t pending_count() const { return ids_.size(); }

  /// True when some device has a free slot and nothing waits for it.
  bool is_hungry() const;

  std::optional<TimePoint> first_ready_at() const { return first_ready_at_; }
  std::uint32_t dim() const { return dim_; }  // 0 before the first worker is ready
  std::vector<WorkerStatus> status() const;

  /// Ends all workers: closes their sockets and waits for them, a second at most. Returns the CPU
  /// seconds of all workers of this run.
  double stop();

 private:
  enum class State : std::uint8_t { Starting, Greeted, Probing, Loading, Ready, Waiting, GivenUp };

  struct InFlight {
    WorkBatch batch;
    TimePoint sent_at;
  };

  struct Slot {
    Device device;
    State state = State::Waiting;
    std::unique_ptr<WorkerProcess> process;
    TimePoint restart_at{};  // in Waiting
    TimePoint last_sign{};   // of life: a frame, or the first batch after idleness
    std::string engine_class;
    std::uint32_t lane_count = 1;
    std::uint64_t token_budget = 0;
    std::deque<InFlight> in_flight;  // oldest first: the first `lane_count` are running
    CostModel cost;
    RestartPolicy restarts;
    WorkerStatus total;
    std::optional<TimePoint> first_ready_at;
    std::string last_words;
  };

  Coordinator(CoordinatorOptions options, CoordinatorEvents events, const Clock& clock);

  Status start_worker(Slot& slot);
  Status wait(Duration timeout);
  Status check_time();
  Status on_frame(Slot& slot, const FrameHeader& header, std::span<const std::byte> payload);
  Status on_hello(Slot& slot, std::span<const std::byte> payload);
  Status on_ready(Slot& slot, std::span<const std::byte> payload);
  Status on_rows(Slot& slot, std::uint64_t id, std::span<const std::byte> payload);
  Status on_failed(Slot& slot, std::uint64_t id, std::span<const std::byte> payload);
  Status on_worker_end(Slot& slot);
  void send_load(Slot& slot);
  void feed();
  void send_batch(Slot& slot, WorkBatch batch);
  void strike(Slot& slot, WorkBatch batch, const std::string& reason);
  void fail_item(ItemKey key, const Error& error);
  std::size_t slot_count(const Slot& slot) const { return 2 * std::size_t{slot.lane_count}; }
  std::size_t index_of(const Slot& slot) const;
  std::size_t live_count() const;
  TimePoint next_deadline() const;
  Duration silence_allowed(const Slot& slot) const;

  const CoordinatorOptions options_;
  const CoordinatorEvents events_;
  const Clock& clock_;
  std::vector<Slot> slots_;
  BatchQueue queue_;
  std::unordered_map<ItemKey, std::vector<std::uint32_t>> ids_;  // of every text not yet answered
  std::optional<Load> load_;
  std::optional<Result<Verdict>> verdict_;
  std::optional<TimePoint> first_ready_at_;
  TimePoint last_step_{};
  std::uint32_t dim_ = 0;
  double reaped_cpu_seconds_ = 0;
};

}  // namespace muster

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "scheduler/batch_queue.h"
#include "scheduler/dispatch_options.h"
#include "scheduler/fair_order.h"
#include "scheduler/key_table.h"
#include "spec/serving.h"

namespace muster {

class DispatchBooks;
class Placer;
struct QueueState;

/// A batch on its way to a device.
struct DispatchBatch {
  WorkBatch work;
  ModelId model = 0;
  Lane lane = Lane::Bulk;
};

/// Why a text or a batch went where it went; for GET /v1/decisions.
struct Decision {
  TimePoint at;
  ModelId model = 0;
  std::size_t device = 0;
  std::uint64_t batch = 0;  // 0: a text was bound, not yet sent
  std::uint64_t text_count = 0;
  std::uint64_t token_count = 0;
  std::string reason;  // "free slot; 12 texts of 3 requests waited", "least work: 0.12 s of 0.31 s"
};

/// Texts that wait for a device.
struct QueuedWork {
  std::uint64_t text_count = 0;
  std::uint64_t token_count = 0;

  void add(std::uint64_t texts, std::uint64_t tokens) {
    text_count += texts;
    token_count += tokens;
  }
  void take(std::uint64_t texts, std::uint64_t tokens) {
    text_count -= texts;
    token_count -= tokens;
  }
};

/// The books of a server: every text that waits or is with a device, and who gets which next.
/// Exact, never polled: what is outstanding on a device is what was given to it and is not back.
///
/// Pure: no clock, file, socket or thread; the same calls give the same answers, so that a run can
/// be replayed. Threads: owned by one loop.
class Dispatcher {
 public:
  Dispatcher(DispatchOptions options, std::size_t device_count);
  ~Dispatcher();

  /// Replaces the options; what is bound stays bound.
  void set_options(DispatchOptions options);
  const DispatchOptions& options() const { return options_; }

  /// Texts bound to a device that stops being eligible (or loses their model) are bound again.
  void set_device(std::size_t device, DispatchDevice state, TimePoint now);
  const DispatchDevice& device(std::size_t device) const;

  /// A text that waits from now on; it may wait for a device to become eligible. now: any time
  /// where nobody looks at it.
  void add(const DispatchItem& item, TimePoint now);
  /// Whether `add` looks at the time: a query is noted with it, and the choice of a device.
  bool looks_at_time(const DispatchItem& item) const {
    return item.lane == Lane::Interactive || options_.strategy != Strategy::Auto;
  }

  /// Takes back a text that has not been cut; false when it is unknown or with a device.
  bool remove(ItemKey key);

  /// Somebody waits for this text now who may wait in the interactive lane: it waits there from now
  /// on, as a text of this flow. Nothing changes for one that is with a device.
  void lift(ItemKey key, FlowId flow, TimePoint now);

  /// True when the text has been given to a device and is not back.
  bool is_with_device(ItemKey key) const;

  /// The next batch for a device with a free slot, nullopt when nothing waits that it may take:
  /// interactive before bulk, within a lane by fair shares of its flows (scheduler/fair_order.h).
  /// While each lane is predicted to run for more than twice `batch_time_most`, nothing is given to
  /// wait behind: another device may be free sooner. While queries come beside bulk texts, the same
  /// holds for a bulk batch of more than a quarter of `batch_time_most`, so that a query waits for
  /// the rest of one such batch at most, and for the device that is free first; and bulk batches
  /// are cut so that the devices end theirs one after the other (scheduler/batch_ends.h).
  std::optional<DispatchBatch> cut(std::size_t device, TimePoint now);

  /// The batch was served: `engine` is the time in the device. A batch may come back, also by the
  /// calls below, with fewer texts than it had: those that are missing are forgotten.
  void on_served(std::size_t device, const DispatchBatch& batch, Duration engine);

  /// A batch of no texts, which the owner had the device compute to learn its cost: counts towards
  /// it as one that was served.
  void calibrate(std::size_t device, ModelId model, std::uint64_t tokens, Duration engine);

  /// As BatchQueue::give_back and BatchQueue::strike. A suspect has its device for itself, so that
  /// a death while it runs is its own; one device at a time empties itself for that.
  void give_back(std::size_t device, DispatchBatch batch, TimePoint now);
  std::optional<ItemKey> strike(std::size_t device, DispatchBatch batch, TimePoint now);

  /// As BatchQueue::retry.
  void retry(std::size_t device, DispatchBatch batch);

  /// The model is gone for good: all about it is dropped once its last text is gone, too.
  void forget(ModelId model);

  /// What such a batch is predicted to take on a device; nullopt before its first one.
  std::optional<Duration> predict(std::size_t device, ModelId model, std::uint64_t tokens) const;

  /// Tokens a second of all eligible devices that have the model; nullopt while nothing was served
  /// or calibrated.
  std::optional<double> tokens_per_second(ModelId model) const;

  /// How long until all that waits or runs now is done by the eligible devices; nullopt while
  /// nothing was served. What admission asks.
  std::optional<Duration> predicted_drain() const;

  std::uint64_t queued_text_count() const;
  std::uint64_t queued_token_count() const;
  /// Of one lane alone.
  const QueuedWork& queued(Lane lane) const { return queued_.at(static_cast<std::size_t>(lane)); }

  /// Tokens of the texts that are not behind one that comes now: those with a device, those that
  /// wait in its lane and in those before it.
  std::uint64_t tokens_ahead(Lane lane) const;

  /// What admission asks for before a request of this model and lane, and of so many tokens of a
  /// flow (scheduler/admission.h): of other flows only what goes before the last of them is ahead.
  QueueState queue_state(ModelId model, Lane lane, FlowId flow = 0, std::uint64_t tokens = 0) const;
  std::uint64_t in_flight_token_count(std::size_t device) const;
  std::uint64_t bound_token_count(std::size_t device) const;  // bound to it and waiting

  /// The newest 256, oldest first.
  std::vector<Decision> decisions() const;

 private:
  /// The texts of one model and lane that wait.
  struct Queues {
    BatchQueue shared;              // bound to no device; suspects of all strategies
    std::vector<BatchQueue> bound;  // by device
  };

  /// A text that has not been answered.
  struct Known {
    DispatchItem item;
    std::optional<std::size_t> bound;  // whose queue it waits in; nullopt: the shared one
    bool is_given = false;             // it is with a device
    std::uint64_t rank = 0;            // when its turn is in its lane

    WorkItem work() const { return {item.key, item.token_count, rank}; }
  };

  /// A batch that is with a device.
  struct Given {
    std::size_t device = 0;
    TimePoint ends_at{};  // as predicted
    std::uint64_t token_count = 0;
    bool is_suspect = false;
    bool is_long = false;
    bool holds_queries_up = false;
    std::vector<ItemKey> keys;
  };

  /// A queue to cut from, and the devices that take what waits for none of them.
  struct Source {
    BatchQueue* queue = nullptr;
    ModelId model = 0;
    ItemTurn first{};
    bool is_bound = false;
    std::vector<std::size_t> takers{};
  };

  Queues& queues(ModelId model, Lane lane);
  void bind_or_wait(Known& known, TimePoint now);
  Known& wait_again(Known known);
  void bind_again(std::size_t device, TimePoint now);
  void bind_waiting(TimePoint now);
  std::optional<DispatchBatch> cut_lane(std::size_t device, Lane lane, TimePoint now);
  bool has_suspect_for(std::size_t device) const;
  bool are_queries_expected(TimePoint now) const;
  bool is_only_device(ModelId model, const std::vector<std::size_t>& takers) const;
  bool is_long(Duration predicted) const;
  bool holds_queries_up(Lane lane, Duration predicted) const;
  Source first_source(std::size_t device, Lane lane);
  DispatchBatch give(std::size_t device, const Source& source, Lane lane, TimePoint now);
  CutLimits limits_of(std::size_t device, ModelId model, Lane lane,
                      const std::vector<std::size_t>& takers) const;
  std::uint64_t token_budget(std::size_t device, ModelId model, Lane lane) const;
  TimePoint begins_at(std::size_t device, TimePoint now) const;
  std::optional<std::uint64_t> tokens_in_turn(std::size_t device, ModelId model,
                                              TimePoint now) const;
  std::optional<std::uint64_t> tokens_within(Duration time, std::size_t device,
                                             ModelId model) const;
  std::uint64_t worthwhile_tokens(std::size_t device, const Source& source, Lane lane) const;
  Given take_given(std::size_t device, const DispatchBatch& batch);
  std::vector<Known> settle(std::size_t device, const DispatchBatch& batch);
  QueuedWork& queued_in(Lane lane) { return queued_.at(static_cast<std::size_t>(lane)); }
  FairOrder& order(Lane lane) { return orders_.at(static_cast<std::size_t>(lane)); }
  void purge(ModelId model);
  void note(Decision decision);

  DispatchOptions options_;
  std::unique_ptr<DispatchBooks> books_;
  std::unique_ptr<Placer> placer_;
  std::map<std::pair<Lane, ModelId>, Queues> queues_;
  KeyTable<Known> known_;                           // every text that waits or is with a device
  std::unordered_map<std::uint64_t, Given> given_;  // by batch: what is with a device
  std::set<ModelId> gone_;                    // told by `forget`, but with texts that are not back
  std::optional<std::size_t> suspect_taker_;  // the device that empties itself for a suspect
  std::deque<Decision> decisions_;
  std::uint64_t next_batch_id_ = 1;
  std::array<QueuedWork, kLaneCount> queued_{};  // by lane
  std::array<FairOrder, kLaneCount> orders_{};   // by lane
  std::optional<TimePoint> last_query_at_;       // an interactive text came
};

}  // namespace muster

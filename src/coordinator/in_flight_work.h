#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "coordinator/batch_costs.h"
#include "coordinator/device_blame.h"
#include "coordinator/fleet.h"
#include "coordinator/fleet_rules.h"
#include "coordinator/model_table.h"
#include "coordinator/step_signal.h"
#include "coordinator/token_budget.h"
#include "coordinator/worker_groups.h"
#include "scheduler/dispatcher.h"
#include "scheduler/key_table.h"
#include "wire/messages.h"

namespace muster {

/// Owns the texts from `submit` until their rows are here: cuts them into batches for groups that
/// have room, delivers rows, and finds out whose fault a failed batch is (device_blame.h). It keeps
/// every text's ids, so that any group may be lost at any time.
///
/// Callbacks of FleetEvents may call it again.
///
/// Threads: not thread-safe; owned by the fleet's loop.
class InFlightWork final : public FleetTexts, public FleetPlacement, public BatchCosts {
 public:
  struct Options {
    std::size_t group_count = 0;
    std::uint32_t batch_tokens = 0;         // upper bound of a batch
    std::map<std::size_t, double> weights;  // by group; 1 where nothing stands
    DispatchOptions dispatch;
    bool is_low_latency = true;  // false: `expect` does nothing
  };

  /// What the work is done with; all of it outlives it.
  struct Parts {
    WorkerGroups& groups;
    const ModelTable& models;
    const FleetEvents& events;
    StepSignal& signal;
    const Clock& clock;
    /// Has the group asked for the canary of a model that is loaded there; the answer comes as
    /// `acquit`, or as WorkerGroups::convict.
    std::function<void(std::size_t group, ModelId model)> ask_canary;
    /// A sentence for people, about a group.
    std::function<void(std::size_t group, const std::string& sentence)> on_notice;
  };

  InFlightWork(Options options, Parts parts);

  // FleetTexts
  void submit(FleetItem item) override;
  void expect() override;
  void lift(ItemKey key, FlowId flow) override;
  bool cancel(ItemKey key) override;
  std::size_t pending_count() const override { return texts_.size() + refused_.size(); }

  // FleetPlacement
  void set_dispatch(DispatchOptions options) override;
  void set_readings(std::size_t group, const DispatchDevice& readings) override;
  const Dispatcher& dispatcher() const override { return dispatcher_; }

  // BatchCosts
  std::optional<Duration> predict(std::size_t group, ModelId model,
                                  std::uint64_t token_count) const override;
  std::uint64_t token_budget(std::size_t group) const override;
  void calibrate(std::size_t group, ModelId model, const LoadTrial::Measure& measure) override;
  void on_out_of_memory(std::size_t group, std::uint64_t token_count) override;

  /// Fails the texts that were refused when they were submitted.
  void deliver_refusals();

  /// Gives waiting texts to the groups that have room, a batch for each in turn.
  void feed();

  bool is_only_text() const { return texts_.size() == 1; }

  /// The group that has the only text of all, as its only frame: what it sends next is the answer.
  std::optional<std::size_t> group_of_only_text() const;

  /// Tells the dispatcher what the group takes: whether it is eligible or has other models, room or
  /// readings.
  void update_group(std::size_t group);

  /// It serves, has a model, and waits for no verdict about a batch that it failed at.
  bool is_eligible(std::size_t group) const;

  /// The group has answered a frame of this id with rows that fit it. Frames without a batch (a
  /// canary's, or one whose batch was given to others) are passed over.
  void on_rows(std::size_t group, std::uint64_t frame, const Rows& rows);

  /// It could not compute the frame. As `on_rows` for frames without a batch.
  void on_failed(std::size_t group, std::uint64_t frame, const Error& error);

  /// Any frame of the group has failed; for what is shown.
  void count_failed(std::size_t group) { ++groups_[group].failed_batch_count; }
  /// The most that its lanes have held beside the weights; for what is shown.
  void note_activation_peak(std::size_t group, std::uint64_t bytes);

  /// What the group has goes back, by fleet_rules.h and device_blame.h.
  void on_lost(std::size_t group, const GroupLoss& loss);
  /// A new life of the group begins without the failures of the last one.
  void on_ended(std::size_t group) { groups_[group].blame.forget(); }

  /// Whether a batch that it failed at waits for its canary.
  bool is_accused(std::size_t group) const { return groups_[group].accusation.has_value(); }

  /// The canary of this model was right: a batch of it that the group failed at is not the group's
  /// fault, as far as that shows. False when it is not accused of one.
  bool acquit(std::size_t group, ModelId model);

  /// There is no memory for the canary of this model either: a batch of it that the group failed at
  /// goes back, and nobody is to blame. After six times the text is: it fails where it fails again.
  void excuse(std::size_t group, ModelId model);

  /// The texts of the model that wait for a group fail.
  void fail_waiting(ModelId model, const Error& error);

  /// The model is served no more: its waiting texts fail, and no question about it stays open.
  void on_unloaded(ModelId model);

  /// Counters, what is in flight, the budget.
  void describe(std::size_t group, GroupStatus& status) const;

 private:
  struct Text {
    FleetItem item;
    std::uint32_t fault_count = 0;                      // groups that failed at it
    std::uint32_t excuse_count = 0;                     // how often no canary had memory either
    std::pair<std::size_t, std::uint32_t> failed_in{};  // the last one: group, serial
    std::optional<std::size_t> not_finite_on{};         // its row was not, on this group
  };

  /// A batch that a live group failed at, while its canary is asked for.
  struct Accusation {
    DispatchBatch batch;
    Error error{ErrorKind::Internal, ""};
  };

  struct Group {
    explicit Group(std::uint64_t batch_tokens) : budget(batch_tokens) {}

    std::deque<std::pair<std::uint64_t, DispatchBatch>> batches;  // with it, by frame, oldest first
    std::optional<Accusation> accusation;
    DeviceBlame blame;
    TokenBudget budget;
    std::uint32_t lone_count = 0;  // batches that it still gets one at a time
    double weight = 1;
    DispatchDevice readings;
    std::uint64_t text_count = 0;
    std::uint64_t token_count = 0;
    std::uint64_t batch_count = 0;
    std::uint64_t failed_batch_count = 0;
    double engine_seconds = 0;  // summed over lanes, divided by their number
    std::uint64_t activation_peak_bytes = 0;
  };

  // in_flight_work.cpp
  std::size_t slot_count(std::size_t index) const;
  void send_batch(std::size_t index, DispatchBatch batch);
  std::optional<DispatchBatch> take_batch(std::size_t index, std::uint64_t frame);
  void on_some_not_finite(std::size_t group, DispatchBatch batch, const Rows& rows);
  void deliver(std::size_t group, ItemKey key, const Rows& rows, std::size_t index);
  void on_whole_batch(std::size_t index, const DispatchBatch& batch, const Rows& rows);

  // work_returns.cpp
  void fail_item(ItemKey key, const Error& error);
  void give_back(std::size_t index, DispatchBatch batch);
  void strike(std::size_t index, DispatchBatch batch, const Error& error);
  void try_elsewhere(std::size_t index, DispatchBatch batch, const Error& error);
  void return_failed(std::size_t index, DispatchBatch batch, const Error& error);
  void after_return(const std::vector<WorkItem>& items, ModelId model);
  void on_full(std::size_t index, DispatchBatch batch, const Error& error);
  void accuse(std::size_t index, DispatchBatch batch, const Error& error);
  void acquit_of(std::size_t index);
  void on_not_finite(std::size_t index, DispatchBatch batch);
  void blame_outdone(std::size_t index, const DispatchBatch& batch);
  bool has_peer(std::size_t index, ModelId model) const;

  const Parts parts_;
  const bool is_low_latency_;
  Dispatcher dispatcher_;
  std::vector<Group> groups_;
  KeyTable<Text> texts_;                            // not yet answered
  std::vector<std::pair<ItemKey, Error>> refused_;  // reported by the next step
  std::size_t last_fed_ = 0;                        // the group that had the last batch
  TimePoint expected_at_{};                         // the last time that one was told to expect one
};

}  // namespace muster

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "coordinator/batch_costs.h"
#include "coordinator/canary_book.h"
#include "coordinator/canary_checks.h"
#include "coordinator/fleet.h"
#include "coordinator/model_table.h"
#include "coordinator/step_signal.h"
#include "coordinator/worker_groups.h"
#include "wire/messages.h"

namespace muster {

/// What becomes of groups by their models and canaries, for the fleet or a test's fake. (A group
/// that gives a wrong vector is convicted: WorkerGroups::convict.) Each call may call the registry
/// again.
///
/// Threads: called on the fleet's loop.
class ModelEvents {
 public:
  virtual ~ModelEvents() = default;

  /// What a group has, or is to have, has changed: it may be given other work.
  virtual void on_models_changed(std::size_t group) = 0;

  /// A model of the group is loaded, its canary was right, and what it costs is known.
  virtual void on_model_ready(std::size_t group) = 0;

  /// A canary of a model that was ready already was right. is_in_time: it took no longer than it
  /// should; nullopt: a later one was answered before this verdict.
  virtual void on_right_canary(std::size_t group, ModelId model,
                               std::optional<bool> is_in_time) = 0;

  /// Two groups disagree about a canary: this one is to start again and answer again.
  virtual void on_disputed_canary(std::size_t group, const std::string& reason) = 0;

  /// The model is served no more: its texts that wait have no device.
  virtual void on_unloaded(ModelId model) = 0;

  /// Whether a batch that the group failed at waits for its canary (device_blame.h).
  virtual bool is_accused(std::size_t group) const = 0;
};

/// Owns the models: which group is to have which, their loading and unloading, their canaries (the
/// texts whose vectors are known, by which a group shows that it computes right), the trial that
/// measures what a model costs before its first text, and the checks of all groups.
///
/// A group is sent what follows (Load, canaries, Unload) by `settle`, outside of all callbacks,
/// except for the first canary after a load.
///
/// Threads: not thread-safe; owned by the fleet's loop.
class ModelRegistry final : public FleetModels {
 public:
  struct Options {
    Duration canary_period{};  // as FleetOptions::canary_period
    /// A device that had no memory for a model so often in a row is tried no more; 0: for ever.
    std::uint32_t full_most = 0;
  };

  /// What the registry works with; all of it outlives it.
  struct Parts {
    ModelTable& table;  // changed by the registry alone
    WorkerGroups& groups;
    BatchCosts& costs;
    ModelEvents& events;
    StepSignal& signal;
    const Clock& clock;
    /// As FleetEvents::on_wrong_canary; may be empty.
    std::function<void(std::size_t group)> on_wrong_canary;
    /// There is no memory for a canary that has to be right, and so no work for this model. It is
    /// asked again, as the sentence says.
    std::function<void(std::size_t group, ModelId model, const std::string& sentence)> on_full;
  };

  ModelRegistry(Options options, Parts parts);

  // FleetModels
  void load(ModelId model, FleetModel what) override;
  void unload(ModelId model) override;
  std::map<std::string, std::vector<float>> canary_rows(ModelId model) const override;
  std::uint32_t dim(ModelId model) const override;
  std::optional<TimePoint> first_ready_at() const override { return first_ready_at_; }

  /// As FleetAdmin::check.
  void check(Duration limit, CanaryChecks::OnDone on_done);

  /// Sends the group what is due: models to load, canaries.
  void settle(std::size_t group, TimePoint now);

  /// Has the group forget models that are served no more and of which it has no batch.
  void drop_leaving(std::size_t group);

  /// Decides disputes between groups that have waited long enough for the other side.
  void decide_disputes(TimePoint now);

  /// Answers the checks that are done.
  void finish_checks(TimePoint now) { checks_.finish(now); }

  TimePoint next_deadline() const;

  /// The group has loaded a model: `ask_first_canary` is next.
  ///
  /// Errors: Corrupt for a model that it was not asked to load, or rows of another length than
  /// those of others.
  Status on_loaded(std::size_t group, const Ready& ready);

  /// A loaded model has to show that it is right before it gets work; without a canary it is
  /// trusted at once.
  void ask_first_canary(std::size_t group, ModelId model);

  /// The group cannot load the model, and is asked again later where that was for want of memory.
  /// False when it was not to.
  bool on_load_failed(std::size_t group, const LoadFailed& failed);

  /// The processes of the group are gone, and its models with them.
  void on_ended(std::size_t group);

  /// Asks for the canary of a model that is loaded there.
  void ask_canary(std::size_t group, ModelId model);

  void on_canary_row(std::size_t group, const SentFrame& canary, const Rows& rows);
  void on_canary_failed(std::size_t group, const SentFrame& canary, const Error& error);
  void on_trial_batch(std::size_t group, const SentFrame& sent, const Rows& rows);
  /// A trial's batch did not fit into memory; what the smaller rounds have shown is enough.
  void on_trial_too_large(std::size_t group, const SentFrame& sent);

  /// Models, and the last canary.
  void describe(std::size_t group, GroupStatus& status) const;

 private:
  struct Model {
    FleetModel what;
    CanaryBook book;
    std::uint32_t dim = 0;
  };
  struct Group {
    std::optional<CanaryResult> last_canary;
    ModelId newest_canary = 0;  // of this model
    std::optional<bool>
        was_in_time;  // it was; nullopt: cut for want of memory, which tells nothing
  };

  // model_registry.cpp
  void load_absent(std::size_t group, TimePoint now);
  bool wait_for_memory(ModelHere& here) const;
  void believe(std::size_t group, ModelId id);
  void begin_trial(std::size_t group, ModelId id);
  void send_trial(std::size_t group, ModelId id, const LoadTrial::Round& round);
  /// Why the first model takes no work that the group cannot load or has no memory for; empty:
  /// there is none.
  std::string model_failure(std::size_t group) const;

  // model_canaries.cpp
  TimePoint group_deadline(std::size_t group) const;
  void ask_due_canaries(std::size_t group, TimePoint now);
  void apply(ModelId id, const std::vector<CanaryVerdict>& verdicts);
  void on_verdict(ModelId id, const CanaryVerdict& verdict);
  void on_right(std::size_t group, ModelId id);
  bool on_full_canary(std::size_t group, ModelId model, const Error& error);
  void answer_checks(std::size_t group, ModelId model, bool is_well, const std::string& reason,
                     std::optional<double> seconds);

  const Options options_;
  const Parts parts_;
  std::map<ModelId, Model> models_;
  std::vector<Group> groups_;
  CanaryChecks checks_;
  std::optional<TimePoint> first_ready_at_;
};

}  // namespace muster

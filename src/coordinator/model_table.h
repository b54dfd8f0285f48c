#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "coordinator/fleet_view.h"
#include "coordinator/load_trial.h"
#include "coordinator/memory_wait.h"
#include "spec/serving.h"

namespace muster {

/// A model as one worker group has it, or is to have it.
struct ModelHere {
  GroupModelStatus status;
  bool awaits_canary = false;        // loaded, and its canary is not known to be right yet
  std::optional<LoadTrial> trial{};  // its canary was right; what it costs is being measured
  bool is_leaving = false;           // to be unloaded when the group has no batch of it any more
  std::optional<TimePoint> canary_at{};  // when the next one is due
  /// There was no memory for its load, or for its canary when that had to be right: it is tried
  /// again, until a canary is right.
  std::optional<MemoryWait> memory{};

  bool is_ready() const { return status.state == ModelState::Ready; }
  /// Its weights are there.
  bool is_loaded() const { return is_ready() || awaits_canary; }
  /// Its canary was right, and it is to stay.
  bool takes_work() const { return is_ready() && !is_leaving && !memory; }

  /// When the load, or the canary of what is loaded, is tried again for which there was no memory;
  /// nullopt: nothing is, or the load is under way.
  std::optional<TimePoint> memory_at() const;
};

/// What the models of one group come to.
enum class ModelsTogether : std::uint8_t {
  None,    // it is to have none, or is to let go those that it has
  Coming,  // none takes work, and one is to be loaded, loads or waits for its canary
  Ready,   // one at least takes work
  Full,    // none takes work, and one waits for memory
  Failed,  // none takes work or will: what it is to have it cannot load
};

/// Which model is where, and in which state. ModelRegistry alone changes it; the supervisor and the
/// work in flight read it.
///
/// Pure. Threads: owned by the fleet's loop.
class ModelTable {
 public:
  using Models = std::map<ModelId, ModelHere>;

  explicit ModelTable(std::size_t group_count) : groups_(group_count) {}

  /// A model is served from now on. has_canary: there is a text whose vector is known.
  void add(ModelId model, bool has_canary) { has_canary_.emplace(model, has_canary); }
  /// It is served no more; groups may have it a little longer (ModelHere::is_leaving).
  bool remove(ModelId model) { return has_canary_.erase(model) > 0; }

  bool is_served(ModelId model) const { return has_canary_.contains(model); }
  bool has_canary(ModelId model) const;

  std::size_t group_count() const { return groups_.size(); }
  Models& on(std::size_t group) { return groups_[group]; }
  const Models& on(std::size_t group) const { return groups_[group]; }

  /// nullptr: the group is not to have it.
  const ModelHere* find(std::size_t group, ModelId model) const;

  /// Whether any group has the model or may still load it.
  bool may_be_loaded(ModelId model) const;

  bool is_loading(std::size_t group) const;
  bool has_ready_model(std::size_t group) const;
  /// No model is to be loaded, loads or waits for its canary.
  bool has_settled_models(std::size_t group) const;
  /// The two above, and whether one waits for memory or what is settled has failed.
  ModelsTogether together(std::size_t group) const;
  /// A loaded model has a canary by which the group can show that it is well again.
  bool has_ready_canary(std::size_t group) const;

 private:
  std::vector<Models> groups_;
  std::map<ModelId, bool> has_canary_;  // of every served model
};

}  // namespace muster

// Models on their way onto groups and off them. A group that starts again finds its models absent
// in the table and is sent them again, so that a restart needs no case of its own.

#include "coordinator/model_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster {

ModelRegistry::ModelRegistry(Options options, Parts parts)
    : options_(options), parts_(std::move(parts)), groups_(parts_.table.group_count()) {}

void ModelRegistry::load(ModelId model, FleetModel what) {
  auto wanted = what.devices;
  if (wanted.empty()) {
    for (std::size_t i = 0; i < groups_.size(); ++i) wanted.push_back(i);
  }
  auto kept = what.canary_rows;
  parts_.table.add(model, !what.canary.empty());
  models_.emplace(model, Model{std::move(what), CanaryBook(std::move(kept))});
  for (const auto group : wanted) {
    MUSTER_CHECK(group < groups_.size());
    parts_.table.on(group)[model];
    parts_.events.on_models_changed(group);
  }
  parts_.signal.change();
}

// Out of the table at once, so that nothing new is taken; groups let it go when their last batch of
// it is back.
void ModelRegistry::unload(ModelId model) {
  if (!parts_.table.remove(model)) return;
  models_.erase(model);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    auto& models = parts_.table.on(i);
    const auto here = models.find(model);
    if (here == models.end()) continue;
    here->second.is_leaving = true;
    answer_checks(i, model, true, "", std::nullopt);
    parts_.events.on_models_changed(i);
  }
  parts_.signal.change();
  parts_.events.on_unloaded(model);
}

void ModelRegistry::settle(std::size_t group, TimePoint now) {
  load_absent(group, now);
  ask_due_canaries(group, now);
}

// Also what there was no memory for, once that is to be tried again; until it is there, its reason
// is shown.
void ModelRegistry::load_absent(std::size_t group, TimePoint now) {
  for (auto& [id, here] : parts_.table.on(group)) {
    const auto again_at = here.is_loaded() ? std::nullopt : here.memory_at();
    const bool is_due = again_at && now >= *again_at;
    const bool is_absent = here.status.state == ModelState::Absent && !here.is_leaving;
    if (!is_absent && !is_due) continue;
    const auto& device = parts_.groups.life(group).leader();
    Load request = models_.at(id).what.load;
    request.model_id = id;
    request.model.device = device.kind;
    request.cpus = device.cpus;
    auto reason = here.memory ? std::move(here.status.reason) : std::string();
    here.status = {};
    here.status.reason = std::move(reason);
    here.status.state = ModelState::Loading;
    parts_.groups.tell(group, MessageType::Load, encode(request));
  }
}

// A group that was asked to load answers first: an unload that overtakes it would leave the worker
// with the model. Frames in flight keep it too.
void ModelRegistry::drop_leaving(std::size_t group) {
  auto& models = parts_.table.on(group);
  for (auto entry = models.begin(); entry != models.end();) {
    const auto id = entry->first;
    const auto& here = entry->second;
    const bool is_alive = parts_.groups.life(group).is_alive();
    const bool is_asked =
        is_alive && here.status.state == ModelState::Loading && !here.awaits_canary;
    if (!here.is_leaving || is_asked || parts_.groups.sent(group).has(id)) {
      ++entry;
      continue;
    }
    const bool is_there =
        here.status.state == ModelState::Ready || here.status.state == ModelState::Loading;
    if (is_alive && is_there) {
      parts_.groups.tell(group, MessageType::Unload, encode(Unload{id}));
    }
    parts_.groups.health(group).speed.forget(id);
    entry = models.erase(entry);
    parts_.signal.change();
  }
}

// All workers must agree on the dimension, since rows are stored side by side.
Status ModelRegistry::on_loaded(std::size_t group, const Ready& ready) {
  auto& models = parts_.table.on(group);
  const auto here = models.find(ready.model_id);
  if (here == models.end() || here->second.status.state != ModelState::Loading) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("{}: worker loaded a model that nobody asked for: {}",
                             parts_.groups.life(group).name, ready.model_id)};
  }
  const auto model = models_.find(ready.model_id);
  if (model != models_.end()) {
    auto& dim = model->second.dim;
    if (ready.dim == 0 || (dim != 0 && dim != ready.dim)) {
      return Error{ErrorKind::Corrupt,
                   fmt::format("workers disagree on the dimension: {} and {}", dim, ready.dim)};
    }
    dim = ready.dim;
  }
  here->second.memory.reset();
  auto& status = here->second.status;
  status.reason.clear();
  status.dim = ready.dim;
  status.weights_bytes = ready.weights_bytes;
  status.load_peak_bytes = ready.load_peak_bytes;
  return Done{};
}

void ModelRegistry::ask_first_canary(std::size_t group, ModelId model) {
  auto& here = parts_.table.on(group).at(model);
  if (!parts_.table.is_served(model)) {
    here.status.state = ModelState::Ready;  // unloaded meanwhile: `drop_leaving` lets it go
  } else if (!parts_.table.has_canary(model)) {
    believe(group, model);
  } else {
    here.awaits_canary = true;
    ask_canary(group, model);
  }
}

bool ModelRegistry::on_load_failed(std::size_t group, const LoadFailed& failed) {
  auto& models = parts_.table.on(group);
  const auto here = models.find(failed.model_id);
  if (here == models.end()) return false;
  here->second.status.state = ModelState::Failed;
  here->second.status.reason = failed.error.message;
  here->second.status.failure_kind = failed.error.kind;
  const bool is_full = failed.error.kind == ErrorKind::ResourceExhausted;
  if (!is_full || !wait_for_memory(here->second)) here->second.memory.reset();
  return true;
}

// False: it was tried often enough.
bool ModelRegistry::wait_for_memory(ModelHere& here) const {
  if (!here.memory) here.memory.emplace();
  here.memory->on_full(parts_.clock.now());
  return options_.full_most == 0 || here.memory->full_count() < options_.full_most;
}

// From here on the group gets texts. The canary's period begins with it, so that groups are not
// asked all at the same time.
void ModelRegistry::believe(std::size_t group, ModelId id) {
  auto& here = parts_.table.on(group).at(id);
  here.status.state = ModelState::Ready;
  here.awaits_canary = false;
  const auto now = parts_.clock.now();
  if (options_.canary_period > Duration{0}) here.canary_at = now + options_.canary_period;
  if (!first_ready_at_) first_ready_at_ = now;
  parts_.events.on_model_ready(group);
}

void ModelRegistry::on_ended(std::size_t group) {
  auto& models = parts_.table.on(group);
  for (auto entry = models.begin(); entry != models.end();) {
    answer_checks(group, entry->first, false, "its worker ended", std::nullopt);
    auto& here = entry->second;
    here.status.state = ModelState::Absent;
    here.awaits_canary = false;
    here.trial.reset();
    here.canary_at.reset();
    here.memory.reset();
    entry = here.is_leaving ? models.erase(entry) : std::next(entry);
  }
}

// Once a device: a worker that was started again costs what the one before it did.
void ModelRegistry::begin_trial(std::size_t group, ModelId id) {
  const auto model = models_.find(id);
  const bool is_due = model != models_.end() && model->second.what.is_measured_at_load &&
                      !parts_.costs.predict(group, id, 1);
  if (!is_due) return believe(group, id);
  auto& here = parts_.table.on(group).at(id);
  here.trial.emplace(model->second.what.canary.size(), parts_.groups.sent(group).lane_count(),
                     parts_.costs.token_budget(group));
  send_trial(group, id, here.trial->round());
}

// The same canary text again and again: its cost is what counts, and its row is not looked at.
void ModelRegistry::send_trial(std::size_t group, ModelId id, const LoadTrial::Round& round) {
  const auto& canary = models_.at(id).what.canary;
  Batch batch{.model_id = id, .lengths = {}, .ids = {}};
  for (std::uint64_t i = 0; i < round.text_count; ++i) {
    batch.lengths.push_back(static_cast<std::uint32_t>(canary.size()));
    batch.ids.insert(batch.ids.end(), canary.begin(), canary.end());
  }
  for (std::uint64_t i = 0; i < round.batch_count; ++i) {
    parts_.groups.send(group,
                       {.kind = FrameKind::Trial,
                        .model = id,
                        .text_count = round.text_count,
                        .token_count = batch.ids.size()},
                       encode(batch));
  }
}

// An out-of-memory is an answer too: the budget is known from then on, and the model works with
// smaller batches.
void ModelRegistry::on_trial_too_large(std::size_t group, const SentFrame& sent) {
  auto& here = parts_.table.on(group).at(sent.model);
  if (!here.trial) return;
  here.trial.reset();
  parts_.costs.on_out_of_memory(group, sent.token_count);
  if (parts_.table.is_served(sent.model)) believe(group, sent.model);
}

void ModelRegistry::on_trial_batch(std::size_t group, const SentFrame& sent, const Rows& rows) {
  auto& here = parts_.table.on(group).at(sent.model);
  const auto measure =
      here.trial ? here.trial->on_batch(Duration(rows.engine_ns), rows.is_cut) : std::nullopt;
  if (!measure || !parts_.table.is_served(sent.model)) return;
  parts_.costs.calibrate(group, sent.model, *measure);
  auto& speed = parts_.groups.health(group).speed;
  if (measure->is_cut) {
    speed.on_cut();
  } else {
    speed.on_served(sent.model, measure->token_count, measure->engine);
  }
  if (!here.trial->is_done()) return send_trial(group, sent.model, here.trial->round());
  here.trial.reset();
  believe(group, sent.model);
}

std::map<std::string, std::vector<float>> ModelRegistry::canary_rows(ModelId model) const {
  const auto found = models_.find(model);
  return found == models_.end() ? std::map<std::string, std::vector<float>>{}
                                : found->second.book.rows();
}

std::uint32_t ModelRegistry::dim(ModelId model) const {
  const auto found = models_.find(model);
  return found == models_.end() ? 0 : found->second.dim;
}

std::string ModelRegistry::model_failure(std::size_t group) const {
  for (const auto& [id, here] : parts_.table.on(group)) {
    const auto& reason = here.status.reason;
    if (here.memory && here.is_loaded()) {
      return fmt::format("there is no memory for its canary: {}; it is asked again", reason);
    }
    if (here.memory) return fmt::format("a model cannot be loaded: {}; it is tried again", reason);
    if (here.status.state == ModelState::Failed) {
      return fmt::format("a model cannot be loaded: {}", reason);
    }
  }
  return {};
}

void ModelRegistry::describe(std::size_t group, GroupStatus& status) const {
  for (const auto& [id, here] : parts_.table.on(group)) {
    auto& shown = status.models.emplace(id, here.status).first->second;
    if (shown.state != ModelState::Failed) shown.failure_kind.reset();  // of an earlier load
    shown.waits_for_memory = here.memory.has_value();
  }
  if (status.reason.empty()) status.reason = model_failure(group);
  status.last_canary = groups_[group].last_canary;
}

}  // namespace muster

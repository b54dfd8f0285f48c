// The part of the fleet that loads models and asks canaries.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "coordinator/worker_fleet.h"

namespace muster {

void WorkerFleet::load(ModelId model, FleetModel what) {
  auto devices = what.devices;
  if (devices.empty()) {
    for (std::size_t i = 0; i < slots_.size(); ++i) devices.push_back(i);
  }
  auto kept = what.canary_rows;
  models_.emplace(model, Model{std::move(what), CanaryBook(std::move(kept))});
  for (const auto device : devices) {
    slots_.at(device).models[model];
    sync(slots_.at(device));
  }
  changed();
}

void WorkerFleet::unload(ModelId model) {
  if (models_.erase(model) == 0) return;
  for (auto& slot : slots_) {
    const auto here = slot.models.find(model);
    if (here == slot.models.end()) continue;
    here->second.is_leaving = true;
    answer_checks(index_of(slot), model, true, "", std::nullopt);
    sync(slot);
  }
  changed();
  // Nobody asks its canary any more: whose fault a batch of it was stays open.
  for (auto& slot : slots_) {
    if (slot.accusation && slot.accusation->batch.model == model) acquit(slot);
  }
  fail_waiting(model, {ErrorKind::NotFound, "the model was unloaded"});
  dispatcher_.forget(model);
}

void WorkerFleet::load_step(WorkerSlot& slot) {
  for (auto& [id, here] : slot.models) {
    if (here.status.state != ModelState::Absent || here.is_leaving) continue;
    Load request = models_.at(id).what.load;
    request.model_id = id;
    request.model.device = slot.device.kind;
    request.cpus = slot.device.cpus;
    here.status = {};
    here.status.state = ModelState::Loading;
    slot.last_sign = clock_.now();
    send(slot, MessageType::Load, 0, encode(request));
  }
}

void WorkerFleet::drop_leaving_models(WorkerSlot& slot) {
  for (auto entry = slot.models.begin(); entry != slot.models.end();) {
    const auto id = entry->first;
    const auto& here = entry->second;
    const bool is_asked =
        slot.is_alive() && here.status.state == ModelState::Loading && !here.awaits_canary;
    if (!here.is_leaving || is_asked || slot.has_in_flight(id)) {
      ++entry;
      continue;
    }
    const bool is_there =
        here.status.state == ModelState::Ready || here.status.state == ModelState::Loading;
    if (slot.is_alive() && is_there) send(slot, MessageType::Unload, 0, encode(Unload{id}));
    slot.health.forget(id);
    entry = slot.models.erase(entry);
    changed();
  }
}

void WorkerFleet::on_model_loaded(WorkerSlot& slot, ModelId id) {
  auto& here = slot.models.at(id);
  const auto model = models_.find(id);
  if (model == models_.end()) {
    here.status.state = ModelState::Ready;  // unloaded meanwhile: `settle` lets it go
  } else if (model->second.what.canary.empty()) {
    believe(slot, id);
  } else {
    here.awaits_canary = true;
    send_canary(slot, id);
  }
}

void WorkerFleet::believe(WorkerSlot& slot, ModelId id) {
  auto& here = slot.models.at(id);
  here.status.state = ModelState::Ready;
  here.awaits_canary = false;
  if (!slot.is_quarantined) slot.reason.clear();
  const auto now = clock_.now();
  if (options_.canary_period > Duration{0}) here.canary_at = now + options_.canary_period;
  slot.was_ready = true;
  if (!slot.first_ready_at) slot.first_ready_at = now;
  if (!first_ready_at_) first_ready_at_ = now;
  sync(slot);
  changed();
}

bool WorkerFleet::has_canary(ModelId id) const {
  const auto model = models_.find(id);
  return model != models_.end() && !model->second.what.canary.empty();
}

void WorkerFleet::send_canary(WorkerSlot& slot, ModelId id) {
  const auto& ids = models_.at(id).what.canary;
  const auto frame = next_frame_++;
  slot.in_flight.push_back({.frame = frame,
                            .batch = std::nullopt,
                            .model = id,
                            .token_count = ids.size(),
                            .is_canary = true,
                            .sent_at = clock_.now(),
                            .running_since = std::nullopt});
  refresh_running(slot);
  send(slot, MessageType::Batch, frame,
       encode(
           Batch{.model_id = id, .lengths = {static_cast<std::uint32_t>(ids.size())}, .ids = ids}));
}

// Once a device: a worker that was started again costs what the one before it did.
void WorkerFleet::begin_trial(WorkerSlot& slot, ModelId id) {
  const auto model = models_.find(id);
  const bool is_due = model != models_.end() && model->second.what.is_measured_at_load &&
                      !dispatcher_.predict(index_of(slot), id, 1);
  if (!is_due) return believe(slot, id);
  auto& here = slot.models.at(id);
  here.trial.emplace(model->second.what.canary.size(), slot.lane_count, slot.budget.now());
  send_trial(slot, id, here.trial->round());
}

void WorkerFleet::send_trial(WorkerSlot& slot, ModelId id, const LoadTrial::Round& round) {
  const auto& canary = models_.at(id).what.canary;
  Batch batch{.model_id = id, .lengths = {}, .ids = {}};
  for (std::uint64_t i = 0; i < round.text_count; ++i) {
    batch.lengths.push_back(static_cast<std::uint32_t>(canary.size()));
    batch.ids.insert(batch.ids.end(), canary.begin(), canary.end());
  }
  for (std::uint64_t i = 0; i < round.batch_count; ++i) {
    const auto frame = next_frame_++;
    slot.in_flight.push_back({.frame = frame,
                              .batch = std::nullopt,
                              .model = id,
                              .text_count = round.text_count,
                              .token_count = batch.ids.size(),
                              .is_trial = true,
                              .sent_at = clock_.now(),
                              .running_since = std::nullopt});
    send(slot, MessageType::Batch, frame, encode(batch));
  }
  refresh_running(slot);
}

// What the smaller rounds told is enough.
void WorkerFleet::on_trial_too_large(WorkerSlot& slot, const InFlight& sent) {
  auto& here = slot.models.at(sent.model);
  if (!here.trial) return;
  here.trial.reset();
  slot.budget.on_out_of_memory(sent.token_count);
  if (models_.count(sent.model) > 0) believe(slot, sent.model);
}

void WorkerFleet::on_trial_batch(WorkerSlot& slot, const InFlight& sent, Duration engine) {
  auto& here = slot.models.at(sent.model);
  const auto measure = here.trial ? here.trial->on_batch(engine) : std::nullopt;
  if (!measure || models_.count(sent.model) == 0) return;
  dispatcher_.calibrate(index_of(slot), sent.model, measure->token_count, measure->engine);
  slot.health.on_served(sent.model, measure->token_count, measure->engine);
  if (!here.trial->is_done()) return send_trial(slot, sent.model, here.trial->round());
  here.trial.reset();
  believe(slot, sent.model);
}

void WorkerFleet::send_due_canaries(WorkerSlot& slot, TimePoint now) {
  for (auto& [id, here] : slot.models) {
    const bool can_answer = here.status.state == ModelState::Ready && !here.is_leaving &&
                            has_canary(id) && !slot.has_canary_in_flight(id);
    if (!can_answer) continue;
    if (slot.slow) {
      if (now < slot.slow->canary_at()) continue;
      slot.slow->on_canary_sent(now);
      send_canary(slot, id);
      return;  // one model is enough to time a device
    }
    // Under load the next free slot is the canary's, before any batch.
    if (here.canary_at && now >= *here.canary_at && slot.has_room()) send_canary(slot, id);
  }
}

void WorkerFleet::on_canary_row(WorkerSlot& slot, const InFlight& canary,
                                std::span<const std::byte> row, Duration engine) {
  const auto now = clock_.now();
  auto& here = slot.models.at(canary.model);
  if (here.canary_at) here.canary_at = now + options_.canary_period;
  const auto model = models_.find(canary.model);
  if (model == models_.end()) return;
  std::vector<float> values(row.size() / sizeof(float));
  std::memcpy(values.data(), row.data(), row.size());
  const auto is_number = [](float value) { return std::isfinite(value); };
  if (!std::all_of(values.begin(), values.end(), is_number)) {
    const Error error{ErrorKind::Internal, "its vector is not finite (NaN or infinity)"};
    return on_canary_failed(slot, canary, error);
  }
  slot.total.last_canary = {.device = index_of(slot),
                            .is_well = false,
                            .reason = "another device answers differently",
                            .seconds = seconds(now - canary.sent_at)};
  const bool is_in_time = slot.health.is_in_time(canary.model, canary.token_count, engine);
  // The first forward of a worker is no fair measure, but better than none; one in quarantine
  // teaches nothing.
  const bool is_first = !slot.health.predict(canary.model, canary.token_count);
  if (is_first || (!here.awaits_canary && !slot.is_quarantined)) {
    slot.health.on_served(canary.model, canary.token_count, engine);
  }
  slot.slow_canary = {canary.model, is_in_time};
  auto& book = model->second.book;
  const auto kept = book.rows().size();
  const auto verdicts = book.judge(index_of(slot), slot.engine_class, std::move(values), now);
  if (book.rows().size() != kept) changed();  // the owner may keep them
  apply(canary.model, verdicts);
}

void WorkerFleet::apply(ModelId id, const std::vector<CanaryVerdict>& verdicts) {
  for (const auto& verdict : verdicts) {
    auto& slot = slots_[verdict.device];
    const auto here = slot.models.find(id);
    if (!slot.is_alive() || here == slot.models.end()) continue;
    if (verdict.outcome == CanaryOutcome::Right) {
      on_right_canary(slot, id);
      continue;
    }
    if (events_.on_wrong_canary) events_.on_wrong_canary(verdict.device);
    if (verdict.outcome == CanaryOutcome::Restart) {
      const auto reason = "another device of its class gives another vector for the canary";
      notice(slot, fmt::format("{}; both are started again and asked again", reason));
      answer_checks(verdict.device, id, false, reason, std::nullopt);
      end_worker(slot, EndReason::Health, reason, WorkerEnd::Innocent);
      continue;
    }
    const auto reason = "it gave a wrong vector for its canary";
    if (slot.total.last_canary) slot.total.last_canary->reason = reason;
    answer_checks(verdict.device, id, false, reason, std::nullopt);
    convict(slot, reason);
  }
}

void WorkerFleet::on_right_canary(WorkerSlot& slot, ModelId id) {
  auto& last = slot.total.last_canary;
  if (last) {
    last->is_well = true;
    last->reason.clear();
  }
  answer_checks(index_of(slot), id, true, "", last ? last->seconds : std::nullopt);
  auto& here = slot.models.at(id);
  if (here.trial) return;
  if (here.awaits_canary) {
    begin_trial(slot, id);
  } else if (slot.accusation && slot.accusation->batch.model == id) {
    acquit(slot);
  } else if (slot.slow && slot.slow_canary.model == id &&
             slot.slow->on_canary(clock_.now(), slot.slow_canary.is_in_time)) {
    end_quarantine(slot, "two canaries in a row were right and in time");
  }
}

void WorkerFleet::on_canary_failed(WorkerSlot& slot, const InFlight& canary, const Error& error) {
  const auto reason = fmt::format("it failed at its canary: {}", error.message);
  slot.total.last_canary = {.device = index_of(slot),
                            .is_well = false,
                            .reason = reason,
                            .seconds = seconds(clock_.now() - canary.sent_at)};
  answer_checks(index_of(slot), canary.model, false, reason, std::nullopt);
  // Too little memory at the moment is no lie; a model that was just loaded is asked again.
  auto& here = slot.models.at(canary.model);
  const bool is_working = !here.awaits_canary && !slot.accusation;
  if (error.kind == ErrorKind::ResourceExhausted && is_working) {
    if (here.canary_at) here.canary_at = clock_.now() + options_.canary_period;
    return;
  }
  convict(slot, reason);
}

void WorkerFleet::check(Duration limit, std::function<void(std::vector<CanaryResult>)> on_done) {
  const auto now = clock_.now();
  Check check{now, now + limit, {}, {}, std::move(on_done)};
  for (auto& slot : slots_) {
    const auto device = index_of(slot);
    const auto state = slot.state();
    auto& result = check.results.emplace_back();
    result.device = device;
    result.is_well = state == FleetState::Ready;
    result.reason = result.is_well ? "" : std::string(fleet_state_name(state));
    if (!result.is_well && !slot.reason.empty() && slot.reason != result.reason) {
      result.reason += ": " + slot.reason;
    }
    for (const auto& [id, here] : slot.models) {
      if (here.status.state != ModelState::Ready || here.is_leaving || !slot.is_alive()) continue;
      if (!has_canary(id)) continue;
      if (!slot.has_canary_in_flight(id)) send_canary(slot, id);
      check.open.insert({device, id});
    }
  }
  checks_.push_back(std::move(check));
  wake();
}

void WorkerFleet::answer_checks(std::size_t device, ModelId model, bool is_well,
                                const std::string& reason, std::optional<double> seconds) {
  for (auto& check : checks_) {
    if (check.open.erase({device, model}) == 0) continue;
    auto& result = check.results[device];
    if (seconds) result.seconds = std::max(result.seconds.value_or(0), *seconds);
    if (is_well || !result.is_well) continue;
    result.is_well = false;
    result.reason = reason;
  }
  if (!checks_.empty()) wake();
}

void WorkerFleet::finish_checks(TimePoint now) {
  for (std::size_t i = 0; i < checks_.size();) {
    auto& check = checks_[i];
    if (!check.open.empty() && now < check.until) {
      ++i;
      continue;
    }
    for (const auto& [device, model] : check.open) {
      auto& result = check.results[device];
      if (!result.is_well) continue;
      result.is_well = false;
      result.reason = fmt::format("no answer in {:.1f} s", seconds(check.until - check.begun_at));
    }
    const auto done = std::move(check);
    checks_.erase(checks_.begin() + static_cast<std::ptrdiff_t>(i));
    done.on_done(done.results);
  }
}

std::map<std::string, std::vector<float>> WorkerFleet::canary_rows(ModelId model) const {
  const auto found = models_.find(model);
  return found == models_.end() ? std::map<std::string, std::vector<float>>{}
                                : found->second.book.rows();
}

std::uint32_t WorkerFleet::dim(ModelId model) const {
  const auto found = models_.find(model);
  return found == models_.end() ? 0 : found->second.dim;
}

}  // namespace muster

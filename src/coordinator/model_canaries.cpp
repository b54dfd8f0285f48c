// Canaries: when they are asked for, and what their answers mean. Which row is right is decided by
// the model's CanaryBook; whether one came in time by the group's own calibration.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "coordinator/model_registry.h"

namespace muster {

void ModelRegistry::ask_canary(std::size_t group, ModelId model) {
  const auto& ids = models_.at(model).what.canary;
  parts_.groups.send(
      group, {.kind = FrameKind::Canary, .model = model, .token_count = ids.size()},
      encode(Batch{
          .model_id = model, .lengths = {static_cast<std::uint32_t>(ids.size())}, .ids = ids}));
}

void ModelRegistry::ask_due_canaries(std::size_t group, TimePoint now) {
  const auto& sent = parts_.groups.sent(group);
  auto& slow = parts_.groups.health(group).slow;
  for (auto& [id, here] : parts_.table.on(group)) {
    if (!parts_.table.has_canary(id) || sent.has_canary(id)) continue;
    const auto again_at = here.is_loaded() ? here.memory_at() : std::nullopt;
    if (again_at && now >= *again_at) ask_canary(group, id);
    if (!here.takes_work()) continue;
    if (slow) {
      if (now < slow->canary_at()) continue;
      slow->on_canary_sent(now);
      ask_canary(group, id);
      return;  // one model is enough to time a device
    }
    // Under load the next free slot is the canary's, before any batch.
    if (here.canary_at && now >= *here.canary_at && sent.has_room()) ask_canary(group, id);
  }
}

void ModelRegistry::on_canary_row(std::size_t group, const SentFrame& canary, const Rows& rows) {
  const auto row = rows.rows;
  const Duration engine(rows.engine_ns);
  const auto now = parts_.clock.now();
  auto& here = parts_.table.on(group).at(canary.model);
  if (here.canary_at) here.canary_at = now + options_.canary_period;
  const auto model = models_.find(canary.model);
  if (model == models_.end()) return;
  std::vector<float> values(row.size() / sizeof(float));
  std::memcpy(values.data(), row.data(), row.size());
  const auto is_number = [](float value) { return std::isfinite(value); };
  if (!std::all_of(values.begin(), values.end(), is_number)) {
    const Error error{ErrorKind::Internal, "its vector is not finite (NaN or infinity)"};
    return on_canary_failed(group, canary, error);
  }
  groups_[group].last_canary = {.group = group,
                                .is_well = false,
                                .reason = "another device answers differently",
                                .seconds = seconds(now - canary.sent_at)};
  auto& speed = parts_.groups.health(group).speed;
  const auto& life = parts_.groups.life(group);
  const bool is_in_time = speed.is_in_time(canary.model, canary.token_count, engine);
  // The first forward of a worker is no fair measure, but better than none; one in quarantine
  // teaches nothing.
  const bool is_first = !speed.predict(canary.model, canary.token_count);
  if (rows.is_cut) {
    speed.on_cut();
  } else if (is_first || (!here.awaits_canary && !life.is_quarantined)) {
    speed.on_served(canary.model, canary.token_count, engine);
  }
  groups_[group].newest_canary = canary.model;
  groups_[group].was_in_time = rows.is_cut ? std::nullopt : std::optional(is_in_time);
  // In a dispute the verdict waits for the other device, for up to a minute.
  if (here.memory) here.memory->on_answered();
  auto& book = model->second.book;
  const auto kept = book.rows().size();
  const auto verdicts = book.judge(group, life.engine_class, std::move(values), now);
  if (book.rows().size() != kept) parts_.signal.change();  // the owner may keep them
  apply(canary.model, verdicts);
}

void ModelRegistry::apply(ModelId id, const std::vector<CanaryVerdict>& verdicts) {
  for (const auto& verdict : verdicts) on_verdict(id, verdict);
}

void ModelRegistry::on_verdict(ModelId id, const CanaryVerdict& verdict) {
  const auto group = verdict.device;
  const bool is_here = parts_.table.find(group, id) != nullptr;
  if (!parts_.groups.life(group).is_alive() || !is_here) return;
  if (verdict.outcome == CanaryOutcome::Right) return on_right(group, id);
  if (parts_.on_wrong_canary) parts_.on_wrong_canary(group);
  if (verdict.outcome == CanaryOutcome::Restart) {
    const auto reason = "another device of its class gives another vector for the canary";
    answer_checks(group, id, false, reason, std::nullopt);
    return parts_.events.on_disputed_canary(group, reason);
  }
  const auto reason = "it gave a wrong vector for its canary";
  if (groups_[group].last_canary) groups_[group].last_canary->reason = reason;
  answer_checks(group, id, false, reason, std::nullopt);
  parts_.groups.convict(group, reason);
}

void ModelRegistry::on_right(std::size_t group, ModelId id) {
  auto& last = groups_[group].last_canary;
  if (last) {
    last->is_well = true;
    last->reason.clear();
  }
  answer_checks(group, id, true, "", last ? last->seconds : std::nullopt);
  auto& here = parts_.table.on(group).at(id);
  if (here.trial) return;
  const bool was_full = std::exchange(here.memory, std::nullopt).has_value();
  if (was_full) here.status.reason.clear();
  if (here.awaits_canary) return begin_trial(group, id);
  if (was_full) believe(group, id);
  const bool is_newest = groups_[group].newest_canary == id;
  parts_.events.on_right_canary(group, id, is_newest ? groups_[group].was_in_time : std::nullopt);
}

void ModelRegistry::on_canary_failed(std::size_t group, const SentFrame& canary,
                                     const Error& error) {
  const auto now = parts_.clock.now();
  const auto reason = fmt::format("it failed at its canary: {}", error.message);
  groups_[group].last_canary = {
      .group = group, .is_well = false, .reason = reason, .seconds = seconds(now - canary.sent_at)};
  answer_checks(group, canary.model, false, reason, std::nullopt);
  const bool is_full = error.kind == ErrorKind::ResourceExhausted;
  if (is_full && on_full_canary(group, canary.model, error)) return;
  parts_.groups.convict(group, reason);
}

// Too little memory at the moment is no wrong vector, and a new worker would have to find more: its
// weights. Where the canary has to be right it is asked again, and until then there is no work.
// False: it was asked often enough.
bool ModelRegistry::on_full_canary(std::size_t group, ModelId model, const Error& error) {
  auto& here = parts_.table.on(group).at(model);
  const bool has_to_be_right = here.awaits_canary || here.memory || parts_.events.is_accused(group);
  if (!has_to_be_right) {
    if (here.canary_at) here.canary_at = parts_.clock.now() + options_.canary_period;
    return true;
  }
  if (!wait_for_memory(here)) return false;
  here.status.reason = error.message;
  here.canary_at.reset();
  parts_.on_full(group, model,
                 fmt::format("there is no memory for its canary: {}; it is asked again in {:.0f} s",
                             error.message, seconds(here.memory->pause())));
  return true;
}

void ModelRegistry::decide_disputes(TimePoint now) {
  // Whoever hears of a lost text may unload a model: no verdict is passed before all are known.
  std::vector<std::pair<ModelId, std::vector<CanaryVerdict>>> decided;
  for (auto& [id, model] : models_) decided.emplace_back(id, model.book.on_time(now));
  for (const auto& [id, verdicts] : decided) apply(id, verdicts);
}

void ModelRegistry::check(Duration limit, CanaryChecks::OnDone on_done) {
  std::vector<CanaryResult> results;
  std::set<std::pair<std::size_t, ModelId>> asked;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const auto& life = parts_.groups.life(i);
    const auto state = life.state(parts_.table.together(i));
    auto& result = results.emplace_back();
    result.group = i;
    result.is_well = state == GroupState::Ready;
    result.reason = result.is_well ? "" : std::string(group_state_name(state));
    const auto why = life.reason.empty() ? model_failure(i) : life.reason;
    if (!result.is_well && !why.empty() && why != result.reason) result.reason += ": " + why;
    for (const auto& [id, here] : parts_.table.on(i)) {
      if (!here.takes_work() || !life.is_alive() || !parts_.table.has_canary(id)) continue;
      if (!parts_.groups.sent(i).has_canary(id)) ask_canary(i, id);
      asked.insert({i, id});
    }
  }
  checks_.begin(parts_.clock.now(), limit, std::move(results), std::move(asked),
                std::move(on_done));
  parts_.signal.wake();
}

void ModelRegistry::answer_checks(std::size_t group, ModelId model, bool is_well,
                                  const std::string& reason, std::optional<double> seconds) {
  if (checks_.answer(group, model, is_well, reason, seconds)) parts_.signal.wake();
}

TimePoint ModelRegistry::next_deadline() const {
  auto deadline = checks_.deadline().value_or(TimePoint::max());
  for (const auto& [id, model] : models_) {
    deadline = std::min(deadline, model.book.deadline().value_or(deadline));
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    // Of one that is not up, nothing is asked (`settle`).
    if (parts_.groups.life(i).is_up()) deadline = std::min(deadline, group_deadline(i));
  }
  return deadline;
}

// What `settle` would not do at that time is no deadline: the owner would wake for it again and
// again.
TimePoint ModelRegistry::group_deadline(std::size_t group) const {
  const auto& sent = parts_.groups.sent(group);
  const auto& slow = parts_.groups.health(group).slow;
  auto deadline = TimePoint::max();
  for (const auto& [id, here] : parts_.table.on(group)) {
    if (sent.has_canary(id)) continue;
    deadline = std::min(deadline, here.memory_at().value_or(deadline));
    if (!here.takes_work() || !parts_.table.has_canary(id)) continue;
    if (slow) {
      deadline = std::min(deadline, slow->canary_at());
    } else if (here.canary_at && sent.has_room()) {
      deadline = std::min(deadline, *here.canary_at);
    }
  }
  return deadline;
}

}  // namespace muster

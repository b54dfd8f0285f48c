// What becomes of models on their devices, and what is shown of it: whoever waits for a model is
// answered when a device has it or none can.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "serving/canary_store.h"
#include "serving/serving_loop.h"

namespace muster {
namespace {

// Every device that is to have the model has this.
bool all_of_devices(ModelId model, const std::vector<GroupStatus>& devices,
                    const std::function<bool(const GroupStatus&)>& is_so) {
  bool has_device = false;
  for (const auto& device : devices) {
    if (!device.models.contains(model)) continue;
    if (!is_so(device)) return false;
    has_device = true;
  }
  return has_device;
}

// Each of them was drained by an operator.
bool is_to_rest(ModelId model, const std::vector<GroupStatus>& devices) {
  return all_of_devices(model, devices, [](const auto& device) { return device.is_to_rest; });
}

// None of them works, nor will soon. Where each has failed to load it for good, that is what its
// state says.
bool is_idle(ModelId model, const std::vector<GroupStatus>& devices) {
  const auto is_away = [model](const auto& device) {
    return device.is_to_rest || device.is_failing || device.models.at(model).waits_for_memory;
  };
  const auto has_failed = [model](const auto& device) {
    return device.models.at(model).state == ModelState::Failed;
  };
  const bool is_any_away = std::any_of(devices.begin(), devices.end(), [&](const auto& device) {
    return device.models.contains(model) && is_away(device);
  });
  return is_any_away && all_of_devices(model, devices, [&](const auto& device) {
           return is_away(device) || has_failed(device);
         });
}

// One of them works as soon as there is memory.
bool waits_for_memory(ModelId model, const std::vector<GroupStatus>& devices) {
  return std::any_of(devices.begin(), devices.end(), [model](const auto& device) {
    const auto here = device.models.find(model);
    return here != device.models.end() && here->second.waits_for_memory && !device.is_to_rest &&
           !device.is_failing;
  });
}

}  // namespace

// Of the devices of these names; of all where none is named.
std::vector<std::string> ServingLoop::engine_classes(
    const std::vector<std::string>& devices) const {
  std::vector<std::string> classes;
  for (const auto& device : fleet_->groups()) {
    const auto& name = device.engine_class;
    const bool is_named = std::find(devices.begin(), devices.end(), device.name) != devices.end();
    if (!devices.empty() && !is_named) continue;
    if (name.empty() || std::find(classes.begin(), classes.end(), name) != classes.end()) continue;
    classes.push_back(name);
  }
  return classes;
}

void ServingLoop::on_fleet_change() {
  const auto devices = fleet_->groups();
  std::vector<std::pair<OnLoaded, Result<ServedModelStatus>>> answers;
  note_classes(devices);
  note_idle_models(devices);
  settle_read_models(devices);
  for (const auto& model : models_.all()) {
    const auto status = status_of(*model, devices);
    if (status.state == ModelState::Ready) keep_canaries(*model);
    const auto waiting = loading_.find(model->id);
    if (waiting == loading_.end() || status.state == ModelState::Loading) continue;
    const bool is_ready = status.state == ModelState::Ready;
    answers.emplace_back(std::move(waiting->second.on_done),
                         is_ready ? Result<ServedModelStatus>(status)
                                  : Error{ErrorKind::Unavailable, status.reason});
    loading_.erase(waiting);
    if (is_ready) continue;
    model->is_leaving = true;
    model->ticket.leave();
  }
  for (const auto& [on_done, answer] : answers) on_done(answer);
  if (!answers.empty()) {
    loop_.post([this] {
      std::vector<ModelId> leaving;
      for (const auto& model : models_.all()) {
        if (model->is_leaving) leaving.push_back(model->id);
      }
      for (const auto id : leaving) on_call_end(id);
    });
  }
}

// A device may come, or come again, with another class than all before: its rows are not cached as
// theirs, and clients are told from then on that there are two.
void ServingLoop::note_classes(const std::vector<GroupStatus>& devices) {
  device_classes_.resize(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto& name = devices[i].engine_class;
    device_classes_[i] = name;
    if (name.empty()) continue;
    for (const auto& model : models_.all()) {
      auto& known = model->engine_classes;
      if (!devices[i].models.contains(model->id)) continue;
      if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
    }
  }
}

// What waits for devices of which none will come would wait until its deadline. Who drains gives
// the time to end what a device has, and then its texts back: what is left then is refused.
void ServingLoop::note_idle_models(const std::vector<GroupStatus>& devices) {
  idle_models_.clear();
  is_any_ending_ = std::any_of(devices.begin(), devices.end(), [](const auto& device) {
    return device.state == GroupState::Draining;
  });
  for (const auto& model : models_.all()) {
    if (!is_idle(model->id, devices)) continue;
    idle_models_.emplace(model->id,
                         IdleModel{.error = no_device(*model, devices),
                                   .waits_for_memory = waits_for_memory(model->id, devices)});
  }
  refuse_idle_calls();
}

void ServingLoop::refuse_idle_calls() {
  if (idle_models_.empty() || is_any_ending_) return;
  const auto now = clock_.now();
  for (const auto id : calls_.ids()) {
    const auto* call = calls_.find(id);
    if (call == nullptr || call->on_tokenized) continue;
    const auto idle = idle_models_.find(call->model);
    if (idle == idle_models_.end()) continue;
    if (idle->second.waits_for_memory && now < held_until(*call)) {
      hold(*call);
    } else {
      fail(id, idle->second.error);
    }
  }
}

// Memory that others hold may be there in a moment: a call waits for it as long as it would for the
// texts of others.
TimePoint ServingLoop::held_until(const Call& call) const {
  return call.begun_at + options_.admission.queue_budget;
}

void ServingLoop::hold(const Call& call) {
  const auto until = held_until(call);
  if (next_refusal_ && *next_refusal_ <= until) return;
  next_refusal_ = until;
  hold_timer_->set(until);
}

void ServingLoop::keep_canaries(const ServingModel& model) {
  if (kept_canaries_.contains(model.id)) return;
  const auto rows = fleet_->models().canary_rows(model.id);
  if (rows.empty()) return;
  kept_canaries_.insert(model.id);
  if (rows == read_canary_rows(options_.cache_folder, model.canary_name())) return;
  if (const auto kept = write_canary_rows(options_.cache_folder, model.canary_name(), rows);
      !kept) {
    notice(fmt::format("the canary cannot be kept: {}", kept.error().message));
  }
}

std::vector<ServedModelStatus> ServingLoop::models() const {
  const auto devices = fleet_->groups();
  std::vector<ServedModelStatus> all;
  for (const auto& model : models_.all()) {
    if (!model->is_leaving) all.push_back(status_of(*model, devices));
  }
  return all;
}

std::uint32_t ServingLoop::row_size(std::string_view model) const {
  const auto found = models_.find(model, ModelTask::Embed);
  return found ? (*found)->row_size : 0;
}

ServedModelStatus ServingLoop::status_of(const ServingModel& model,
                                         const std::vector<GroupStatus>& devices) const {
  const auto& opened = model.opened;
  ServedModelStatus status{.id = model.id,
                           .name = model.name,
                           .path = opened.folder.path.string(),
                           .task = model.task,
                           .state = ModelState::Failed,
                           .reason = {},
                           .dim = model.row_size,
                           .length_max = opened.text_encoder->length_max(),
                           .vocab_size = opened.folder.encoder.vocab_size,
                           .prompts = {},
                           .default_prompt = opened.prompt_name,
                           .family = opened.folder.encoder.family,
                           .hash = opened.hash,
                           .pooling = opened.pooling,
                           .normalize = opened.normalize,
                           .precision = model.precision.precision,
                           .precision_reason = model.precision.reason,
                           .equality_class = model.equality_class(),
                           .created_unix_seconds = model.created_unix_seconds,
                           .request_count = model.request_count,
                           .text_count = model.text_count,
                           .token_count = model.token_count};
  for (const auto& prompt : opened.folder.sentence.prompts) status.prompts.push_back(prompt.name);
  if (is_to_rest(model.id, devices)) {
    status.state = ModelState::Drained;
    status.reason = no_device(model, devices).error.message;
    return status;
  }
  if (is_idle(model.id, devices)) {
    status.reason = no_device(model, devices).error.message;
    return status;
  }
  // The best state of all its devices; Failed only when it is that on each. A device that rests
  // says nothing.
  for (const auto& device : devices) {
    const auto found = device.models.find(model.id);
    if (found == device.models.end() || device.is_to_rest) continue;
    const auto state = found->second.state;
    if (state == ModelState::Ready && !found->second.waits_for_memory) status.state = state;
    if (state == ModelState::Failed && status.reason.empty()) {
      status.reason = fmt::format("{}: {}", device.name, found->second.reason);
    }
    const bool may_come = state == ModelState::Loading || state == ModelState::Absent;
    if (may_come && status.state == ModelState::Failed) status.state = ModelState::Loading;
  }
  if (status.state != ModelState::Failed) status.reason.clear();
  return status;
}

}  // namespace muster

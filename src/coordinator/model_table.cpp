// A model is in the table of a group from the moment that it is to be there until its memory has
// been given back, which may be after the model itself is served no more.

#include "coordinator/model_table.h"

#include <algorithm>

namespace muster {

std::optional<TimePoint> ModelHere::memory_at() const {
  const bool is_tried_now = !is_loaded() && status.state != ModelState::Failed;
  if (!memory || is_leaving || is_tried_now) return std::nullopt;
  return memory->at();
}

bool ModelTable::has_canary(ModelId model) const {
  const auto found = has_canary_.find(model);
  return found != has_canary_.end() && found->second;
}

const ModelHere* ModelTable::find(std::size_t group, ModelId model) const {
  const auto found = groups_[group].find(model);
  return found == groups_[group].end() ? nullptr : &found->second;
}

bool ModelTable::may_be_loaded(ModelId model) const {
  return std::any_of(groups_.begin(), groups_.end(), [model](const Models& models) {
    const auto here = models.find(model);
    if (here == models.end()) return false;
    return here->second.status.state != ModelState::Failed || here->second.memory;
  });
}

bool ModelTable::is_loading(std::size_t group) const {
  const auto& models = groups_[group];
  return std::any_of(models.begin(), models.end(), [](const auto& entry) {
    return entry.second.status.state == ModelState::Loading && !entry.second.awaits_canary;
  });
}

bool ModelTable::has_ready_model(std::size_t group) const {
  const auto& models = groups_[group];
  return std::any_of(models.begin(), models.end(),
                     [](const auto& entry) { return entry.second.takes_work(); });
}

bool ModelTable::has_settled_models(std::size_t group) const {
  const auto& models = groups_[group];
  return std::none_of(models.begin(), models.end(), [](const auto& entry) {
    const auto state = entry.second.status.state;
    return state == ModelState::Absent || state == ModelState::Loading;
  });
}

ModelsTogether ModelTable::together(std::size_t group) const {
  if (has_ready_model(group)) return ModelsTogether::Ready;
  const auto& models = groups_[group];
  const bool is_full = std::any_of(models.begin(), models.end(), [](const auto& entry) {
    return entry.second.memory && !entry.second.is_leaving;
  });
  if (is_full) return ModelsTogether::Full;
  if (!has_settled_models(group)) return ModelsTogether::Coming;
  const bool has_failed = std::any_of(models.begin(), models.end(), [](const auto& entry) {
    return entry.second.status.state == ModelState::Failed && !entry.second.is_leaving;
  });
  return has_failed ? ModelsTogether::Failed : ModelsTogether::None;
}

bool ModelTable::has_ready_canary(std::size_t group) const {
  const auto& models = groups_[group];
  return std::any_of(models.begin(), models.end(), [this](const auto& entry) {
    return entry.second.is_ready() && has_canary(entry.first);
  });
}

}  // namespace muster

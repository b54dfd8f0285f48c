// What a model is called may be known only once its files are read, so a place and a name are taken
// one after the other.

#include "serving/model_roster.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster {

ModelRoster::Ticket& ModelRoster::Ticket::operator=(Ticket&& other) noexcept {
  if (this == &other) return *this;
  leave();
  roster_ = std::exchange(other.roster_, nullptr);
  id_ = other.id_;
  return *this;
}

void ModelRoster::Ticket::leave() {
  if (auto* const roster = std::exchange(roster_, nullptr)) roster->names_.erase(id_);
}

Status ModelRoster::Ticket::take_name(const std::string& name) {
  for (const auto& [id, taken] : roster_->names_) {
    if (taken != name || id == id_) continue;
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("a model of that name is there: {}", name)};
  }
  roster_->names_[id_] = name;
  return Done{};
}

Result<ModelRoster::Ticket> ModelRoster::enter() {
  if (names_.size() >= most_) {
    return Error{ErrorKind::ResourceExhausted,
                 fmt::format("models_most allows {} models at a time", most_)};
  }
  const auto id = next_id_++;
  names_.emplace(id, std::string());
  return Ticket(this, id);
}

bool ModelRoster::has_name(std::string_view name) const {
  return std::any_of(names_.begin(), names_.end(),
                     [name](const auto& entry) { return entry.second == name; });
}

}  // namespace muster

#include "coordinator/worker_slot.h"

#include <algorithm>

namespace muster {

std::string_view fleet_state_name(FleetState state) {
  switch (state) {
    case FleetState::Starting:
      return "starting";
    case FleetState::Ready:
      return "ready";
    case FleetState::Quarantined:
      return "quarantined";
    case FleetState::Draining:
      return "draining";
    case FleetState::Drained:
      return "drained";
    case FleetState::Restarting:
      return "restarting";
    case FleetState::GivenUp:
      return "given up";
  }
  return "?";
}

std::string_view model_state_name(ModelState state) {
  switch (state) {
    case ModelState::Absent:
      return "absent";
    case ModelState::Loading:
      return "loading";
    case ModelState::Ready:
      return "ready";
    case ModelState::Failed:
      return "failed";
    case ModelState::Drained:
      return "drained";
  }
  return "?";
}

bool WorkerSlot::is_loading() const {
  return std::any_of(models.begin(), models.end(), [](const auto& entry) {
    return entry.second.status.state == ModelState::Loading && !entry.second.awaits_canary;
  });
}

bool WorkerSlot::has_ready_model() const {
  return std::any_of(models.begin(), models.end(), [](const auto& entry) {
    return entry.second.status.state == ModelState::Ready && !entry.second.is_leaving;
  });
}

bool WorkerSlot::has_settled_models() const {
  return std::none_of(models.begin(), models.end(), [](const auto& entry) {
    return entry.second.status.state == ModelState::Absent ||
           entry.second.status.state == ModelState::Loading;
  });
}

bool WorkerSlot::is_eligible() const {
  return is_alive() && is_greeted && !is_probing && goal == Goal::Serve && !is_quarantined &&
         !accusation && has_ready_model();
}

bool WorkerSlot::is_failing() const {
  constexpr Duration kBackoffOfFailing = std::chrono::seconds(1);
  return is_given_up || (!is_eligible() && restarts.backoff() >= kBackoffOfFailing);
}

bool WorkerSlot::has_in_flight(ModelId model) const {
  return std::any_of(in_flight.begin(), in_flight.end(),
                     [model](const InFlight& sent) { return sent.model == model; });
}

bool WorkerSlot::has_canary_in_flight(ModelId model) const {
  return std::any_of(in_flight.begin(), in_flight.end(), [model](const InFlight& sent) {
    return sent.is_canary && sent.model == model;
  });
}

Duration WorkerSlot::running(TimePoint now) const {
  if (in_flight.empty() || !in_flight.front().running_since) return Duration{0};
  return now - *in_flight.front().running_since;
}

FleetState WorkerSlot::state() const {
  if (is_given_up) return FleetState::GivenUp;
  if (goal == Goal::Drain && !process) return FleetState::Drained;
  if (goal != Goal::Serve) return FleetState::Draining;
  if (is_quarantined) return FleetState::Quarantined;
  if (restart_at || end_by || !process) return FleetState::Restarting;
  const bool is_settled = is_greeted && !is_probing && has_settled_models();
  if (is_settled || has_ready_model()) return FleetState::Ready;
  return total.restart_count > 0 ? FleetState::Restarting : FleetState::Starting;
}

}  // namespace muster

// The words of states are part of the HTTP interface (docs/openapi.yaml) and of the log.

#include "coordinator/fleet_view.h"

namespace muster {

std::string_view group_state_name(GroupState state) {
  switch (state) {
    case GroupState::Starting:
      return "starting";
    case GroupState::Ready:
      return "ready";
    case GroupState::Quarantined:
      return "quarantined";
    case GroupState::Draining:
      return "draining";
    case GroupState::Drained:
      return "drained";
    case GroupState::Restarting:
      return "restarting";
    case GroupState::GivenUp:
      return "given up";
    case GroupState::Idle:
      return "idle";
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

std::uint64_t FleetView::queued_text_count() const {
  std::uint64_t count = 0;
  for (const auto& queue : queues) count += queue.text_count;
  return count;
}

std::uint64_t FleetView::queued_token_count() const {
  std::uint64_t count = 0;
  for (const auto& queue : queues) count += queue.token_count;
  return count;
}

}  // namespace muster

// The order of the questions matters: what an operator wants hides a quarantine, and a quarantine
// hides that the processes are started again for it.

#include "coordinator/group_life.h"

namespace muster {

GroupState GroupLife::state(ModelsTogether models) const {
  if (is_given_up) return GroupState::GivenUp;
  if (goal == GroupGoal::Drain && !has_processes) return GroupState::Drained;
  if (goal != GroupGoal::Serve) return GroupState::Draining;
  if (is_idle) return GroupState::Idle;
  if (is_quarantined) return GroupState::Quarantined;
  if (serial == 0) return GroupState::Starting;  // it was idle until now
  if (restart_at || end_by || !has_processes) return GroupState::Restarting;
  if (models == ModelsTogether::Ready) return GroupState::Ready;
  if (models == ModelsTogether::Full) return GroupState::Restarting;
  const bool is_settled = is_greeted && !is_probing && models != ModelsTogether::Coming;
  if (is_settled) {
    return models == ModelsTogether::Failed ? GroupState::GivenUp : GroupState::Ready;
  }
  return restart_count > 0 ? GroupState::Restarting : GroupState::Starting;
}

}  // namespace muster

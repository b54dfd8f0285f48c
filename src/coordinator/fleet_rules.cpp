#include "coordinator/fleet_rules.h"

namespace muster {

BatchFate fate_of_batch(WorkerEnd end, bool was_running, bool is_suspected, bool has_peer) {
  if (end == WorkerEnd::Innocent || !was_running) return BatchFate::Again;
  const bool may_be_device = end == WorkerEnd::Silent && has_peer && !is_suspected;
  return may_be_device ? BatchFate::Elsewhere : BatchFate::Apart;
}

}  // namespace muster

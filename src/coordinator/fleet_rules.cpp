// What becomes of a batch whose worker ended. Only a batch that was running can be the cause.
// Silence may be the device's fault, so the batch is first tried whole on another device; a crash,
// or a second silence, takes it apart to find the guilty text.

#include "coordinator/fleet_rules.h"

namespace muster {

BatchFate fate_of_batch(WorkerEnd end, bool was_running, bool is_suspected, bool has_peer) {
  if (end == WorkerEnd::Innocent || !was_running) return BatchFate::Again;
  const bool may_be_device = end == WorkerEnd::Silent && has_peer && !is_suspected;
  return may_be_device ? BatchFate::Elsewhere : BatchFate::Apart;
}

}  // namespace muster

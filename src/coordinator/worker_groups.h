#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/device_health.h"
#include "coordinator/group_life.h"
#include "coordinator/restart_policy.h"
#include "coordinator/sent_frames.h"
#include "wire/messages.h"

namespace muster {

/// What is known of how well one worker group works. Whoever sees it work adds to it; the
/// supervisor decides by it.
struct GroupHealth {
  DeviceHealth speed;                  // what its batches cost while it was well
  RestartPolicy restarts;              // when it starts again after its next end
  std::optional<SlowQuarantine> slow;  // it is quarantined for slowness, and its processes live
};

/// The worker groups as models and work in flight see them: WorkerSupervisor, or a test's fake.
///
/// Threads: owned by the fleet's loop.
class WorkerGroups {
 public:
  virtual ~WorkerGroups() = default;

  virtual const GroupLife& life(std::size_t group) const = 0;

  /// What the group has been sent and has not answered.
  virtual const SentFrames& sent(std::size_t group) const = 0;

  virtual GroupHealth& health(std::size_t group) = 0;

  /// Sends what has no answer that is waited for here: Load, Unload, Expect. A group that is asked
  /// to load has given a sign of life.
  virtual void tell(std::size_t group, MessageType type, std::vector<std::byte> payload) = 0;

  /// Sends a Batch, which is in flight until it is answered; the id that it was given.
  virtual std::uint64_t send(std::size_t group, SentFrame frame,
                             std::vector<std::byte> payload) = 0;

  /// The group is at fault: it is quarantined and ended, and what it had goes to others.
  virtual void convict(std::size_t group, const std::string& reason) = 0;
};

}  // namespace muster

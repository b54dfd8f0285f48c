#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "cli/find_machine.h"
#include "sweep/sweep_config.h"
#include "sweep/sweep_points.h"

namespace muster {

/// Bytes that a device may hold, by its name.
using MemoryLimits = std::map<std::string, std::uint64_t>;

/// Whether models fit their devices as `backend.device_map` and `backend.max_memory` ask for it:
/// the planner counts a whole copy on each, which is what muster runs, to the byte.
class PlacementCheck {
 public:
  /// Looks at the machine. Errors: those of find_machine.
  static Result<PlacementCheck> create(const CommandContext& context, const SweepConfig& config,
                                       const SweepFacts& facts);

  /// The limits of a point; empty where the file has none.
  ///
  /// Errors: InvalidArgument (a device that the point has not, no size, a map that cuts one model
  /// over several devices), ResourceExhausted (it does not fit, with the bytes), with the place.
  Result<MemoryLimits> check(const SweepPoint& point) const;

 private:
  PlacementCheck(const CommandContext& context, const SweepConfig& config, const SweepFacts& facts)
      : context_(context), config_(config), facts_(facts) {}

  Result<MemoryLimits> limits_of(const SweepPoint& point, const std::vector<Device>& devices) const;
  Status check_fit(const SweepPoint& point, const std::vector<Device>& devices,
                   const MemoryLimits& limits) const;

  const CommandContext& context_;
  const SweepConfig& config_;
  const SweepFacts& facts_;
  FoundMachine machine_;
};

/// Devices that held more than they may, each in a sentence. held: by name, what their workers
/// counted; one that does not tell is passed over. Threads: pure.
std::vector<std::string> memory_faults(const MemoryLimits& limits,
                                       const std::map<std::string, std::uint64_t>& held);

/// What each device's worker held at most, of the answer of GET /v1/devices: while it loaded, or
/// weights and the largest batch. Workers that do not count are left out. Threads: pure.
std::map<std::string, std::uint64_t> held_memory(const std::string& devices_answer);

}  // namespace muster

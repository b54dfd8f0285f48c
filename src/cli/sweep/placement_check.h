#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "cli/find_machine.h"
#include "sweep/sweep_config.h"
#include "sweep/sweep_points.h"

namespace muster {

/// Bytes that a device may hold, by its name.
using MemoryLimits = std::map<std::string, std::uint64_t>;

/// The limits of a point's devices by its `max_memory`: "0=20GB,cuda:1=1GiB". Those of other
/// devices are passed over. A number is the device of that number, of whatever kind.
///
/// place: for messages. requested: the devices of all points, here or not.
/// Errors: InvalidArgument (a device that no point has, a number that several of the point's
/// devices have, a second limit of one device, no size), with the place. Threads: pure.
Result<MemoryLimits> limits_of(std::string_view max_memory, const std::string& place,
                               const std::vector<std::string>& requested,
                               const std::vector<Device>& devices);

/// Whether models fit their devices as `backend.device_map` and `backend.max_memory` ask for it:
/// the planner counts a whole copy on each, which is what muster runs, to the byte.
class PlacementCheck {
 public:
  /// Looks at the machine. requested: the devices of all points, here or not.
  /// Errors: those of find_machine.
  static Result<PlacementCheck> create(const CommandContext& context, const SweepConfig& config,
                                       const SweepFacts& facts, std::vector<std::string> requested);

  /// The limits of a point; empty where the file has none. Those of other points' devices are
  /// passed over.
  ///
  /// Errors: those of limits_of; InvalidArgument (a map that cuts one model over several devices),
  /// ResourceExhausted (it does not fit, with the bytes), with the place.
  Result<MemoryLimits> check(const SweepPoint& point) const;

 private:
  PlacementCheck(const CommandContext& context, const SweepConfig& config, const SweepFacts& facts,
                 std::vector<std::string> requested)
      : context_(context), config_(config), facts_(facts), requested_(std::move(requested)) {}

  Status check_fit(const SweepPoint& point, const std::vector<Device>& devices,
                   const MemoryLimits& limits) const;

  const CommandContext& context_;
  const SweepConfig& config_;
  const SweepFacts& facts_;
  const std::vector<std::string> requested_;
  FoundMachine machine_;
};

/// Devices that held more than they may, each in a sentence. held: by name, what their workers
/// counted; one that does not tell is passed over. Threads: pure.
std::vector<std::string> memory_faults(const MemoryLimits& limits,
                                       const std::map<std::string, std::uint64_t>& held);

}  // namespace muster

#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "cli/sweep/availability_check.h"
#include "cli/sweep/placement_check.h"
#include "sweep/sweep_config.h"
#include "sweep/sweep_points.h"

namespace muster {

/// Everything that is known before the first point is measured.
struct SweepPlan {
  SweepConfig config;
  SweepFacts facts;
  SweepDevices devices;
  std::vector<SweepPoint> points = {};              // at least one, in the order of measuring
  std::map<std::string, MemoryLimits> limits = {};  // of each point
};

/// Reads the file and checks it against its data set, models, devices and placement, and the
/// command of every point. Asks a server that runs already for its model where the file has none.
/// Says on standard error which devices there are. Writes nothing.
///
/// Errors: those of the checks, with the place in the file; NotFound where a device is missing and
/// `--allow-missing` is not given, or no point has one.
Result<SweepPlan> plan_sweep(const CommandContext& context);

}  // namespace muster

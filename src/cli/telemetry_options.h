#pragma once

#include "base/result.h"
#include "cli/command.h"
#include "telemetry/collector.h"

namespace muster {

/// The flags by which a command that watches devices is told where to look; it also takes the
/// settings NvmlPath and SysfsRoot.
FlagGroup watched_machine_flags();

/// Where the sampler of this command looks.
///
/// Errors: NotFound (no such library, folder or machine), before anything is started.
Result<CollectorOptions> collector_options(const CommandContext& context);

}  // namespace muster

#pragma once

#include "base/result.h"
#include "cli/command.h"
#include "telemetry/collector.h"

namespace muster {

/// The flags by which a command that watches devices is told where to look; it also takes the
/// settings NvmlPath and SysfsRoot.
FlagGroup watched_machine_flags();

/// Where a sampler looks by the settings alone.
///
/// Errors: NotFound (no such library or folder), before anything is started.
Result<CollectorOptions> collector_options(const Config& config);

/// The same, or the machine that the command names by --machine.
///
/// Errors: NotFound (no such library, folder or machine), before anything is started.
Result<CollectorOptions> collector_options(const CommandContext& context);

}  // namespace muster

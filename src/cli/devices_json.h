#pragma once

#include <optional>
#include <string>

#include "spec/device.h"
#include "spec/telemetry.h"

namespace muster {

/// What `muster devices --json` prints: an object with "cpus", "gpus" and "slices" (of GPUs, by
/// MIG), each device with its identity, state and, for whole GPUs, links by the other's name. What
/// is not known is null. host: nullopt for a machine that is not this one.
std::string devices_json(const std::optional<Inventory>& host, const TelemetrySnapshot& snapshot);

}  // namespace muster

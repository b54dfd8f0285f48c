#pragma once

#include <optional>

#include "scheduler/dispatcher.h"
#include "spec/device.h"
#include "spec/telemetry.h"

namespace muster {

/// What a snapshot says of a device, as strategies look at it: memory, utilisation, temperature,
/// power; everything else is as it was made. What is not known is absent. nullopt: the device is
/// not watched.
///
/// A CPU device has no memory of its own: the machine's is told.
/// Threads: pure.
std::optional<DispatchDevice> readings_of(const Device& device, const TelemetrySnapshot& snapshot);

}  // namespace muster

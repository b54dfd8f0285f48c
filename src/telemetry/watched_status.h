#pragma once

#include "spec/device.h"
#include "spec/telemetry.h"

namespace muster {

/// What a snapshot says of a device for work; nullptr: it is not watched. A share of a machine's
/// cores is watched as part of the machine's first CPU.
///
/// Owner: the snapshot. Threads: pure.
const DeviceStatus* watched_status(const Device& device, const TelemetrySnapshot& snapshot);

}  // namespace muster

#pragma once

#include <cstddef>
#include <string>

#include "spec/device.h"
#include "spec/telemetry.h"

namespace muster {

/// What `muster devices` says of the machine itself: CPU, cores, quota, memory, fast paths.
std::string describe_host(const Inventory& inventory, std::size_t width);

/// A row for each GPU, its slices below it, and each CPU: model, memory, state, what CUDA programs
/// call it, UUID; and why there is no GPU, or what a row leaves open. `width`: columns, in which
/// models and UUIDs are cut.
std::string describe_devices(const TelemetrySnapshot& snapshot, std::size_t width);

}  // namespace muster

#pragma once

#include <string>

#include "spec/device.h"
#include "spec/telemetry.h"
#include "terminal/terminal_info.h"

namespace muster {

/// What `muster devices` says of the machine itself: CPU, cores, quota, memory, fast paths.
std::string describe_host(const Inventory& inventory, const TerminalInfo& terminal);

/// A row for each GPU, its slices below it, and each CPU: model, memory, state, what CUDA programs
/// call it, UUID; and why there is no GPU, or what a row leaves open. On a narrow terminal UUIDs
/// stand below their rows, and drivers leave.
std::string describe_devices(const TelemetrySnapshot& snapshot, const TerminalInfo& terminal);

}  // namespace muster

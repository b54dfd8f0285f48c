#pragma once

#include <string>

#include "spec/telemetry.h"
#include "terminal/terminal_info.h"

namespace muster {

/// How the GPUs reach each other, as `nvidia-smi topo -m` writes it, with the NUMA node and the CPU
/// that are nearest to each, and what the labels mean. Where the names of all GPUs do not fit
/// beside each other, columns are headed by numbers.
///
/// Source: nvidia-smi(1), topo -m.
std::string describe_topology(const TelemetrySnapshot& snapshot, const TerminalInfo& terminal);

}  // namespace muster

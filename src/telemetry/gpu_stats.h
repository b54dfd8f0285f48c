#pragma once

#include <string>

#include "spec/telemetry.h"

namespace muster {

/// Statistics of the GPUs in the names and units of two kinds of clients; docs/gpu-statistics.md
/// has the table. What is not known is null. GPUs are those that are no slices, by their index.
/// Errors: none. Threads: pure.

/// `{"timestamp", "devices": [{"index", "name", …}]}`: the answer of GET /api/v1/gpu/stats, without
/// the fields that are about tasks.
std::string gpu_stats_json(const TelemetrySnapshot& snapshot);

/// `{"gpu_0": {"id", "name", "memory_total", …}}`: gpu_info of /multigpu/stats.
std::string gpu_info_json(const TelemetrySnapshot& snapshot);

}  // namespace muster

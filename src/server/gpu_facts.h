#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "coordinator/fleet.h"
#include "serving/inference_service.h"
#include "spec/telemetry.h"

namespace muster {

/// The answer of GET /api/v1/gpu/stats: `gpu_stats_json` with each GPU's `active_tasks` and
/// `completed_tasks`, and `total_tasks_completed`, `total_tasks_pending`, `avg_time_per_batch_ms`
/// of all devices, those that are no GPUs too. A task is a text.
///
/// Threads: pure, as all below.
nlohmann::ordered_json gpu_stats_with_tasks(const TelemetrySnapshot& snapshot,
                                            const ServiceStatus& service,
                                            const std::vector<FleetDeviceStatus>& devices);

/// What the answers below /multigpu are made of.
struct GpusSeen {
  std::string timestamp;                     // "2023-11-14T22:13:20Z"
  bool has_cuda = false;                     // a CUDA device that is up
  std::vector<std::uint32_t> ids;            // GPUs that are no slices, by index
  std::vector<std::uint32_t> available_ids;  // up, with less than 90 % of the memory in use, and
                                             // not put aside by the server
};

GpusSeen gpu_facts(const TelemetrySnapshot& snapshot,
                   const std::vector<FleetDeviceStatus>& devices);

/// `{"gpu_0": {"id", "name", …}}`, as gpu_info_json.
nlohmann::ordered_json gpu_info(const TelemetrySnapshot& snapshot);

/// The mean of a field over the GPUs that tell it; null when none does.
nlohmann::ordered_json mean_of(const nlohmann::ordered_json& info, const std::string& field);

/// `{"gpu_0": value}` of one field.
nlohmann::ordered_json field_of(const nlohmann::ordered_json& info, const std::string& field);

}  // namespace muster

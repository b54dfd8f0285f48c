#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "coordinator/fleet.h"
#include "scheduler/dispatcher.h"
#include "serving/inference_service.h"

namespace muster {

/// One device of GET /v1/devices. `models`: what the ids are called.
nlohmann::ordered_json device_json(const FleetDeviceStatus& device,
                                   const std::vector<ServedModelStatus>& models);

/// One placement of GET /v1/decisions.
nlohmann::ordered_json decision_json(const Decision& decision, TimePoint now,
                                     const std::vector<FleetDeviceStatus>& devices,
                                     const std::vector<ServedModelStatus>& models);

}  // namespace muster

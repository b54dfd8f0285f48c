#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "coordinator/fleet.h"
#include "scheduler/dispatcher.h"
#include "serving/generation_call.h"
#include "serving/inference_service.h"

namespace muster {

/// One device of GET /v1/devices. `models`: what the ids are called. `decoders`: all of the
/// server's; what each has of the device's workers is shown.
nlohmann::ordered_json device_json(const GroupStatus& device,
                                   const std::vector<ServedModelStatus>& models,
                                   const std::vector<ServedDecoderStatus>& decoders);

/// One placement of GET /v1/decisions.
nlohmann::ordered_json decision_json(const Decision& decision, TimePoint now,
                                     const std::vector<GroupStatus>& devices,
                                     const std::vector<ServedModelStatus>& models);

}  // namespace muster

#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "planner/recommend.h"

namespace muster {

/// The device to choose, each device's figures, and the hardware that holds the model.
/// `classes`: those given to `recommend`.
std::string recommendation_text(const ModelDescription& model, const Machine& machine,
                                const Recommendation& advice, std::span<const DeviceClass> classes,
                                std::size_t width);

nlohmann::ordered_json recommendation_json(const ModelDescription& model, const Machine& machine,
                                           const Recommendation& advice,
                                           std::span<const DeviceClass> classes);

}  // namespace muster

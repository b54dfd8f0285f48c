#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "planner/plan/recommend.h"
#include "serving/inference_service.h"

namespace muster {

/// Every type of GPU of the catalogue.
std::vector<DeviceClass> known_classes();

/// The device to choose, each device's figures, and the hardware that holds the model.
/// `classes`: those given to `recommend`.
std::string recommendation_text(const ModelDescription& model, const Machine& machine,
                                const Recommendation& advice, std::span<const DeviceClass> classes,
                                std::size_t width);

nlohmann::ordered_json recommendation_json(const ModelDescription& model, const Machine& machine,
                                           const Recommendation& advice,
                                           std::span<const DeviceClass> classes);

/// What a server asks about a model of its own: as `recommendation_json`, at the length and
/// precision that it is served with and the largest batch that a worker gets.
///
/// batch_tokens: the most of one batch.
/// Errors: those of describe_model and recommend. Threads: thread-safe; it reads the headers of the
/// model's files.
Result<std::string> served_recommendation(const ServedModelStatus& served, const Machine& machine,
                                          std::uint32_t batch_tokens);

}  // namespace muster

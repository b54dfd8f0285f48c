#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/deploy_devices.h"
#include "deploy/container_request.h"

namespace muster {

/// What splitting a model needs to know about it.
struct ModelFacts {
  ModelHeads heads;
  std::uint64_t weight_bytes = 0;
};

/// Reads a model's files; none where the model is not on this machine, or of a family that is not
/// known here: the server may know it.
///
/// Errors: those of a model that is here and broken.
Result<std::optional<ModelFacts>> read_model_facts(const std::string& model);

/// The NVIDIA GPUs of an inventory with the memory that a new program can have.
std::vector<DeviceCandidate> device_candidates(const Inventory& inventory);

}  // namespace muster

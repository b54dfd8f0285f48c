#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "deploy/container_request.h"

namespace muster {

/// What splitting a model needs to know about it.
struct ModelFacts {
  ModelHeads heads;
  std::uint64_t weight_bytes = 0;  // as stored
};

/// Reads a model's configuration and the headers of its files; no weight is read.
///
/// Errors: those of `find_model_source` and `describe_model`.
Result<ModelFacts> read_model_facts(const std::string& model);

/// Whether a container can be planned without these facts: the model is not on this machine, or of
/// a family that the server may know though this program does not.
bool is_model_unknown(const Error& error);

}  // namespace muster

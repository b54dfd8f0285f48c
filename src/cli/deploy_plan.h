#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "deploy/container_request.h"

namespace muster {

/// What a plan says about the containers of a model.
struct PlannedContainers {
  std::vector<std::string> devices;  // as `--devices` takes them, in order; those of copy 0 first
  std::uint32_t copies = 1;
  ShardCounts shards;  // of each copy
  // vLLM: layers of each pipeline stage, which it would else make as even as it can.
  std::optional<EnvironmentVariable> partition = {};
};

/// Reads a plan of `muster plan -o` for containers of a server.
///
/// model: what --model names, or what is known of it. may_be_elsewhere: nothing is started here, so
/// a plan for another machine, or one only thought of, will do.
/// Errors: those of reading the plan; InvalidArgument (a plan of another model); Unsupported, by
/// name: another task than the server's, parts of the model off the devices, a split that the
/// server does not have, another machine.
Result<PlannedContainers> planned_containers(const std::string& file, ServerApi api,
                                             const std::string& model, bool may_be_elsewhere);

}  // namespace muster

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "containers/container_devices.h"
#include "deploy/container_request.h"

namespace muster {

enum class DeployFormat : std::uint8_t { Docker, Compose, Kubernetes };

/// What `muster deploy container` is asked for.
struct DeployOptions {
  ContainerRequest request;
  DeployFormat format = DeployFormat::Docker;
  bool is_dry_run = false;         // --dry-run, or a form that is only text
  std::vector<std::string> notes;  // for people
};

/// Reads the flags, the devices of this machine and, where it is here, the model.
///
/// Errors: InvalidArgument and NotFound, one sentence each; those of `parse_container_devices` and
/// of reading the model.
Result<DeployOptions> deploy_options(const Arguments& arguments, const ContainerHost& host);

}  // namespace muster

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "containers/docker_client.h"
#include "deploy/deployment.h"

namespace muster {

/// A container of a deployment, as the docker client tells of it.
struct DeployedContainer {
  std::string id;
  std::string name;
  std::string deployment;
  std::string api;
  std::string model;
  std::string state;    // "running", "exited"
  std::string status;   // "Up 5 minutes", "Exited (1) 2 seconds ago"
  std::string address;  // "127.0.0.1:8080->80/tcp"
};

/// Starts every container of a deployment and looks whether each runs. When one does not start,
/// those that were started before it, and what is left of it, are removed again.
///
/// Errors: Unavailable: docker could not start one; one ended at once (it is kept, so that its log
/// can be read).
Status start_deployment(const DockerClient& docker, const Deployment& deployment);

/// The containers that muster started: of one deployment, or the container of that name; all
/// without a name.
///
/// Errors: NotFound, naming the deployments that are there; those of the client.
Result<std::vector<DeployedContainer>> find_containers(const DockerClient& docker,
                                                       const std::optional<std::string>& name);

/// Shows the containers' logs as they come, from both of their streams. The value is the client's
/// exit code.
Result<int> show_logs(const DockerClient& docker, const std::vector<DeployedContainer>& containers,
                      bool follows, const std::optional<std::string>& tail);

/// Stops the containers and removes them; what they downloaded stays in its volume.
///
/// Errors: Unavailable.
Status stop_containers(const DockerClient& docker,
                       const std::vector<DeployedContainer>& containers);

}  // namespace muster

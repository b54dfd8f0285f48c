#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "deploy/container_request.h"
#include "deploy/shard_choice.h"

namespace muster {

/// One container, with everything decided.
struct ContainerSpec {
  std::string name;
  std::string image;
  std::uint16_t host_port = 0;
  std::vector<ContainerDevice> devices;
  std::vector<EnvironmentVariable> environment;
  std::vector<std::string> arguments;  // after the image
};

/// What a request comes to: one container, or equal ones beside each other where the server cannot
/// split a model (TEI), the devices cannot be joined (MIG slices), or a plan has copies.
struct Deployment {
  std::string name;
  ServerApi api = ServerApi::Tgi;
  std::string model;  // as the server is told it
  std::string host;
  std::uint64_t shm_bytes = 0;
  ShardCounts shards;  // of each container
  std::vector<ContainerVolume> volumes;
  std::vector<std::uint32_t> group_ids;
  // What fills the model's volume before the servers start: words behind the image, of a run that
  // must end well. Empty: nothing.
  std::vector<std::string> first_arguments;
  std::vector<ContainerSpec> containers;
  std::vector<std::string>
      notes;  // sentences for people: what was decided that they may not expect
};

/// Checks a request and decides what is open.
///
/// Errors: InvalidArgument (no model, a device twice, devices of several kinds, a name, port,
/// variable or volume that is none, a variable or argument that follows from the devices),
/// Unsupported (no image for the device; AMD GPUs for ServerApi::Muster). Threads: pure.
Result<Deployment> plan_deployment(const ContainerRequest& request);

/// A name that Docker, compose and Kubernetes all take: "Meta/Llama_3.1" -> "meta-llama-3-1", at
/// most 50 characters, so that a number fits behind it. Source: RFC 1123, label names.
std::string deployment_name(ServerApi api, const std::string& model);

/// Where a folder of the host that holds a model is seen inside.
std::string model_target(const std::string& folder);

}  // namespace muster

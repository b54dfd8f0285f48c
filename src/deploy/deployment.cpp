// Decides what a request leaves open: name, port, image, replicas. A server that cannot split a
// model gets one container for each device instead.

#include "deploy/deployment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

#include "deploy/device_order.h"
#include "deploy/request_check.h"
#include "deploy/server_api.h"

namespace muster {
namespace {

// TEI serves from one GPU, and no process can use two MIG slices (vLLM #7211, CUDA's enumeration);
// muster has a process for each.
std::size_t container_count(const ContainerRequest& request) {
  if (request.devices.size() < 2 || request.api == ServerApi::Muster) return 1;
  if (request.api == ServerApi::Tei || is_mig(request.devices.front())) {
    return request.devices.size();
  }
  return std::max<std::size_t>(request.copies, 1);
}

std::vector<ContainerVolume> volumes_of(const ContainerRequest& request) {
  const auto& facts = server_facts(request.api);
  auto volumes = request.volumes;
  if (request.model.starts_with('/')) {
    volumes.push_back({request.model, model_target(request.model), true});
  }
  if (!request.hub_cache.empty()) {
    volumes.push_back({request.hub_cache, std::string(facts.cache_target), true});
  }
  const bool has_cache = std::any_of(volumes.begin(), volumes.end(), [&](const auto& volume) {
    return volume.target == facts.cache_target;
  });
  if (!has_cache) {
    volumes.push_back({std::string(facts.cache_volume), std::string(facts.cache_target), false});
  }
  return volumes;
}

std::vector<std::string> arguments_of(const ContainerRequest& request, const std::string& model,
                                      const ShardCounts& shards) {
  const auto& facts = server_facts(request.api);
  std::vector<std::string> arguments{std::string(facts.model_flag), model};
  if (request.api == ServerApi::Muster) {
    const auto devices = !request.own_devices.empty() ? request.own_devices
                         : request.devices.empty()    ? "cpu"
                                                      : "cuda";
    arguments = {"serve",     model,  "--listen", fmt::format("0.0.0.0:{}", facts.port),
                 "--devices", devices};
  }
  if (request.api == ServerApi::Tgi && !request.devices.empty()) {
    // Said even where it is one: without it TGI takes every GPU that it sees.
    arguments.insert(arguments.end(), {"--num-shard", std::to_string(shards.tensor)});
  }
  if (request.api == ServerApi::Vllm && shards.tensor > 1) {
    arguments.insert(arguments.end(), {"--tensor-parallel-size", std::to_string(shards.tensor)});
  }
  if (request.api == ServerApi::Vllm && shards.pipeline > 1) {
    arguments.insert(arguments.end(),
                     {"--pipeline-parallel-size", std::to_string(shards.pipeline)});
  }
  arguments.insert(arguments.end(), request.server_arguments.begin(),
                   request.server_arguments.end());
  return arguments;
}

Result<ContainerSpec> make_container(const ContainerRequest& request, const Deployment& deployment,
                                     std::vector<ContainerDevice> devices, std::size_t replica) {
  ContainerSpec container;
  const bool is_only = container_count(request) == 1;
  container.name = is_only ? deployment.name : fmt::format("{}-{}", deployment.name, replica);
  container.host_port = static_cast<std::uint16_t>(request.port + replica);
  const auto* device = devices.empty() ? nullptr : &devices.front();
  container.image = request.image
                        ? *request.image
                        : MUSTER_TRY(default_image(request.api, device, request.is_arm64));
  container.environment = inner_order(devices).environment;
  if (devices.empty()) {
    // The images ask for all GPUs, and a host may make NVIDIA's runtime the default one. Source:
    // NVIDIA Container Toolkit, "Environment variables (OCI spec)": void is as with runc.
    container.environment.push_back({"NVIDIA_VISIBLE_DEVICES", "void"});
  }
  if (request.api == ServerApi::Muster) {
    container.environment.push_back(
        {"HF_HUB_CACHE", std::string(server_facts(request.api).cache_target)});
  }
  container.environment.insert(container.environment.end(), request.environment.begin(),
                               request.environment.end());
  container.arguments = arguments_of(request, deployment.model, deployment.shards);
  container.devices = std::move(devices);
  return container;
}

std::vector<std::string> notes_on(const ContainerRequest& request, const ShardCounts& shards) {
  std::vector<std::string> notes;
  const auto count = request.devices.size();
  const auto title = server_facts(request.api).title;
  if (request.api == ServerApi::Muster && !request.image) {
    notes.emplace_back(
        "no image of muster is published: packaging/Dockerfile makes this one from the tarball of "
        "./package");
  }
  if (count < 2 || request.api == ServerApi::Muster) return notes;
  if (request.api == ServerApi::Tei) {
    notes.push_back(fmt::format("{} runs on one GPU, so there is a container for each of the {}",
                                title, count));
    return notes;
  }
  if (is_mig(request.devices.front())) {
    notes.push_back(fmt::format(
        "MIG slices cannot be joined, so there is a container for each of the {}", count));
    return notes;
  }
  if (request.heads.head_count == 0 && !request.shards) {
    notes.push_back(
        fmt::format("the model is not here, so whether its heads divide by {} is left to {}",
                    shards.tensor, title));
  }
  if (inner_order(request.devices).container_index.empty()) {
    notes.push_back(
        "inside, the GPUs are numbered in PCI order; what that is on the host is not "
        "known here");
  }
  return notes;
}

}  // namespace

std::string deployment_name(ServerApi api, const std::string& model) {
  constexpr std::size_t kSizeMax = 50;
  const auto last = model.find_last_not_of('/');
  const auto kept = std::string_view(model).substr(0, last + 1);
  std::string name = fmt::format("muster-{}-", server_api_name(api));
  for (const char c : kept.substr(kept.rfind('/') + 1)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = byte < 0x80 && std::isalnum(byte) != 0;
    if (is_plain) {
      name += static_cast<char>(std::tolower(byte));
    } else if (name.back() != '-') {
      name += '-';
    }
  }
  name.resize(std::min(name.size(), kSizeMax));
  name.resize(name.find_last_not_of('-') + 1);
  return name;
}

std::string model_target(const std::string& folder) {
  const auto kept = std::string_view(folder).substr(0, folder.find_last_not_of('/') + 1);
  return fmt::format("/models/{}", kept.substr(kept.rfind('/') + 1));
}

Result<Deployment> plan_deployment(const ContainerRequest& request) {
  MUSTER_TRY(check_request(request));
  const auto& facts = server_facts(request.api);
  Deployment deployment;
  deployment.api = request.api;
  deployment.name =
      request.name.empty() ? deployment_name(request.api, request.model) : request.name;
  deployment.model = request.model.starts_with('/') ? model_target(request.model) : request.model;
  deployment.host = request.host;
  deployment.shm_bytes = request.shm_bytes.value_or(facts.shm_bytes);
  deployment.group_ids = request.group_ids;
  deployment.volumes = volumes_of(request);
  const bool is_fetched = request.api == ServerApi::Muster && request.hub_cache.empty() &&
                          !request.model.starts_with('/');
  if (is_fetched) deployment.first_arguments = {"pull", request.model};

  const auto count = container_count(request);
  const auto each = request.devices.size() / count;
  deployment.shards =
      request.shards
          ? *request.shards
          : MUSTER_TRY(choose_shards(request.api, static_cast<std::uint32_t>(each), request.heads));
  deployment.notes = notes_on(request, deployment.shards);
  for (std::size_t i = 0; i < count; ++i) {
    const auto first = request.devices.begin() + static_cast<std::ptrdiff_t>(i * each);
    deployment.containers.push_back(MUSTER_TRY(make_container(
        request, deployment, {first, first + static_cast<std::ptrdiff_t>(each)}, i)));
  }
  return deployment;
}

}  // namespace muster

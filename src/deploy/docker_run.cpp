// Builds the words of `docker run`. They are passed to execve without a shell, so a model name with
// spaces or quotes needs no escaping and cannot become an option.

#include "deploy/docker_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "deploy/server_api.h"

namespace muster {
namespace {

std::vector<std::string> device_words(const Deployment& deployment,
                                      const ContainerSpec& container) {
  std::vector<std::string> words;
  if (container.devices.empty()) return words;
  const auto kind = container.devices.front().kind;
  if (kind == ContainerDeviceKind::Nvidia || kind == ContainerDeviceKind::Mig) {
    return {"--gpus", gpus_value(container.devices)};
  }
  if (kind == ContainerDeviceKind::Rocm) {
    words.insert(words.end(), {"--device", std::string(kRocmComputeFile)});
  }
  for (const auto& device : container.devices) {
    words.insert(words.end(), {"--device", device.id});
  }
  if (kind == ContainerDeviceKind::Rocm) {
    for (const auto& group : rocm_groups(deployment)) {
      words.insert(words.end(), {"--group-add", group});
    }
    words.insert(words.end(), {"--cap-add", std::string(kRocmCapability), "--security-opt",
                               std::string(kRocmSecurity)});
  }
  return words;
}

}  // namespace

std::vector<std::string> first_run_words(const Deployment& deployment) {
  if (deployment.first_arguments.empty()) return {};
  const auto& container = deployment.containers.front();
  std::vector<std::string> words{"docker", "run", "--rm"};
  for (const auto& [name, value] : container.environment) {
    words.insert(words.end(), {"--env", fmt::format("{}={}", name, value)});
  }
  for (const auto& volume : deployment.volumes) {
    words.insert(words.end(), {"--volume", volume_text(volume)});
  }
  words.push_back(container.image);
  words.insert(words.end(), deployment.first_arguments.begin(), deployment.first_arguments.end());
  return words;
}

std::vector<std::string> health_words(ServerApi api) {
  const auto& facts = server_facts(api);
  if (!facts.is_asked_by_curl) return {};
  return {"curl", "-fsS", fmt::format("http://127.0.0.1:{}{}", facts.port, facts.health_path)};
}

std::string gpus_value(const std::vector<ContainerDevice>& devices) {
  std::string ids;
  for (const auto& device : devices) {
    const bool is_asked_so =
        device.kind == ContainerDeviceKind::Nvidia || device.kind == ContainerDeviceKind::Mig;
    if (!is_asked_so) return "";
    ids += (ids.empty() ? "" : ",") + device.id;
  }
  if (devices.size() < 2) return ids.empty() ? "" : "device=" + ids;
  return fmt::format("\"device={}\"", ids);
}

std::string memory_size_text(std::uint64_t bytes) {
  constexpr std::array<std::pair<std::uint64_t, char>, 3> kUnits{
      {{1ULL << 30, 'g'}, {1ULL << 20, 'm'}, {1ULL << 10, 'k'}}};
  for (const auto& [unit, letter] : kUnits) {
    if (bytes % unit == 0) return fmt::format("{}{}", bytes / unit, letter);
  }
  return std::to_string(bytes);
}

std::string published_port(const Deployment& deployment, const ContainerSpec& container) {
  const bool is_ipv6 = deployment.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}:{}", is_ipv6 ? "[" : "", deployment.host, is_ipv6 ? "]" : "",
                     container.host_port, server_facts(deployment.api).port);
}

std::string volume_text(const ContainerVolume& volume) {
  return fmt::format("{}:{}{}", volume.source, volume.target, volume.is_read_only ? ":ro" : "");
}

std::vector<std::string> rocm_groups(const Deployment& deployment) {
  if (deployment.group_ids.empty()) return {"video"};
  std::vector<std::string> groups;
  for (const auto id : deployment.group_ids) groups.push_back(std::to_string(id));
  return groups;
}

Result<std::vector<std::string>> docker_run_words(const Deployment& deployment,
                                                  const ContainerSpec& container) {
  const bool has_nameless = std::any_of(container.devices.begin(), container.devices.end(),
                                        [](const auto& device) { return device.id.empty(); });
  if (has_nameless) {
    return Error{ErrorKind::InvalidArgument,
                 "Docker takes devices by name, such as the UUID that --detect-only shows"};
  }
  std::vector<std::string> words{"docker", "run", "--detach", "--name", container.name};
  const auto add = [&words](std::string flag, std::string value) {
    words.push_back(std::move(flag));
    words.push_back(std::move(value));
  };
  add("--label", fmt::format("{}={}", kDeploymentLabel, deployment.name));
  add("--label", fmt::format("{}={}", kApiLabel, server_api_name(deployment.api)));
  add("--label", fmt::format("{}={}", kModelLabel, deployment.model));
  const auto devices = device_words(deployment, container);
  words.insert(words.end(), devices.begin(), devices.end());
  add("--shm-size", memory_size_text(deployment.shm_bytes));
  if (const auto health = health_words(deployment.api); !health.empty()) {
    add("--health-cmd", fmt::format("{}", fmt::join(health, " ")));
    add("--health-start-period", std::string(kHealthStartPeriod));
  }
  if (const auto seconds = server_facts(deployment.api).stop_seconds; seconds > 0) {
    add("--stop-timeout", std::to_string(seconds));
  }
  for (const auto& [name, value] : container.environment) {
    add("--env", fmt::format("{}={}", name, value));
  }
  for (const auto& volume : deployment.volumes) add("--volume", volume_text(volume));
  add("--publish", published_port(deployment, container));
  words.push_back(container.image);
  words.insert(words.end(), container.arguments.begin(), container.arguments.end());
  return words;
}

}  // namespace muster

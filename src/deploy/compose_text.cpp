// The text is put together by hand rather than by a YAML library, so that keys stand in the order
// in which people read them. Every value goes through yaml_scalar, which quotes what YAML would
// read as something else.

#include "deploy/compose_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "deploy/docker_run.h"
#include "deploy/server_api.h"
#include "deploy/yaml_text.h"

namespace muster {
namespace {

std::string scalar(std::string_view text) {
  std::string doubled;
  for (const char c : text) {
    doubled += c;
    if (c == '$') doubled += c;
  }
  return yaml_scalar(doubled);
}

// "      key:\n        - a\n        - b\n".
std::string list(std::string_view key, const std::vector<std::string>& values) {
  auto out = fmt::format("    {}:\n", key);
  for (const auto& value : values) out += fmt::format("      - {}\n", scalar(value));
  return out;
}

std::string reservation(const std::vector<ContainerDevice>& devices) {
  const bool is_cdi = devices.front().kind == ContainerDeviceKind::Cdi;
  auto out = fmt::format(
      "    deploy:\n"
      "      resources:\n"
      "        reservations:\n"
      "          devices:\n"
      "            - driver: {}\n"
      "              device_ids:\n",
      is_cdi ? "cdi" : "nvidia");
  for (const auto& device : devices) {
    out += fmt::format("                - {}\n", scalar(device.id));
  }
  return out + "              capabilities:\n                - gpu\n";
}

std::string device_part(const Deployment& deployment, const ContainerSpec& container) {
  if (container.devices.empty()) return "";
  if (container.devices.front().kind != ContainerDeviceKind::Rocm) {
    return reservation(container.devices);
  }
  std::vector<std::string> files{fmt::format("{0}:{0}", kRocmComputeFile)};
  for (const auto& device : container.devices) files.push_back(fmt::format("{0}:{0}", device.id));
  return list("devices", files) + list("group_add", rocm_groups(deployment)) +
         list("cap_add", {std::string(kRocmCapability)}) +
         list("security_opt", {std::string(kRocmSecurity)});
}

std::string variables(const ContainerSpec& container) {
  std::string out = container.environment.empty() ? "" : "    environment:\n";
  for (const auto& [name, value] : container.environment) {
    out += fmt::format("      {}: {}\n", scalar(name), scalar(value));
  }
  return out;
}

std::string mounts(const Deployment& deployment) {
  std::vector<std::string> volumes;
  for (const auto& volume : deployment.volumes) volumes.push_back(volume_text(volume));
  return list("volumes", volumes);
}

std::string first_service_name(const Deployment& deployment) { return deployment.name + "-first"; }

// Runs to its end before the others start.
std::string first_service(const Deployment& deployment) {
  const auto& container = deployment.containers.front();
  return fmt::format("  {}:\n    image: {}\n", first_service_name(deployment),
                     scalar(container.image)) +
         list("command", deployment.first_arguments) + variables(container) + mounts(deployment);
}

std::string health_part(ServerApi api) {
  auto words = health_words(api);
  if (words.empty()) return "";
  std::string out = "    healthcheck:\n      test:\n        - CMD\n";
  for (const auto& word : words) out += fmt::format("        - {}\n", scalar(word));
  return out + fmt::format("      start_period: {}\n", kHealthStartPeriod);
}

std::string service(const Deployment& deployment, const ContainerSpec& container) {
  auto out = fmt::format("  {}:\n", container.name);
  out += fmt::format("    image: {}\n", scalar(container.image));
  out += fmt::format("    container_name: {}\n", container.name);
  out += "    labels:\n";
  out += fmt::format("      {}: {}\n", kDeploymentLabel, scalar(deployment.name));
  out += fmt::format("      {}: {}\n", kApiLabel, scalar(server_api_name(deployment.api)));
  out += fmt::format("      {}: {}\n", kModelLabel, scalar(deployment.model));
  out += list("command", container.arguments);
  out += variables(container);
  out += list("ports", {published_port(deployment, container)});
  out += mounts(deployment);
  if (!deployment.first_arguments.empty()) {
    out += fmt::format(
        "    depends_on:\n      {}:\n        condition: service_completed_successfully\n",
        first_service_name(deployment));
  }
  out += health_part(deployment.api);
  if (const auto seconds = server_facts(deployment.api).stop_seconds; seconds > 0) {
    out += fmt::format("    stop_grace_period: {}s\n", seconds);
  }
  out += fmt::format("    shm_size: {}\n", scalar(memory_size_text(deployment.shm_bytes)));
  return out + device_part(deployment, container);
}

}  // namespace

Result<std::string> compose_text(const Deployment& deployment) {
  auto out = fmt::format("name: {}\nservices:\n", deployment.name);
  if (!deployment.first_arguments.empty()) out += first_service(deployment);
  for (const auto& container : deployment.containers) {
    // The same check as for the command line: a reservation without ids would take any GPU.
    MUSTER_TRY(docker_run_words(deployment, container));
    out += service(deployment, container);
  }
  std::string names;
  for (const auto& volume : deployment.volumes) {
    // With its name given, compose takes the volume that `docker run` uses, not one of its own.
    if (!volume.is_folder()) names += fmt::format("  {0}:\n    name: {0}\n", volume.source);
  }
  return names.empty() ? out : out + "volumes:\n" + names;
}

}  // namespace muster

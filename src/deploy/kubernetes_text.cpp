// Kubernetes hands out GPUs by count and resource name, never by number, so the chosen devices
// become "so many of this resource", and replicas must all be alike. What only makes sense for
// known places (the order of devices) is left out.

#include "deploy/kubernetes_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "deploy/docker_run.h"
#include "deploy/server_api.h"
#include "deploy/yaml_text.h"

namespace muster {
namespace {

// How long a server may take to load its model before it is started again: 10 s x 360, an hour, as
// large models are downloaded first.
constexpr int kProbePeriodSeconds = 10;
constexpr int kStartupProbes = 360;

std::string scalar(std::string_view text) {
  std::string doubled;
  for (const char c : text) {
    doubled += c;
    if (c == '$') doubled += c;
  }
  return yaml_scalar(doubled);
}

// "1g" is written "1Gi" here, and so on.
std::string quantity(std::uint64_t bytes) {
  auto text = memory_size_text(bytes);
  if (std::isalpha(static_cast<unsigned char>(text.back())) == 0) return text;
  // Kubernetes writes Ki with a capital as well. Source: "Resource Management for Pods".
  text.back() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.back())));
  return text + "i";
}

bool is_profile(std::string_view profile) {
  return !profile.empty() && std::all_of(profile.begin(), profile.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '+';
  });
}

std::string probe(std::string_view name, const Deployment& deployment, int failures) {
  return fmt::format(
      "          {}:\n"
      "            httpGet:\n"
      "              path: {}\n"
      "              port: http\n"
      "            periodSeconds: {}\n"
      "            failureThreshold: {}\n",
      name, server_facts(deployment.api).health_path, kProbePeriodSeconds, failures);
}

std::string volume_name(std::size_t index) { return fmt::format("volume-{}", index); }

// What every container of the pod says: its program and variables.
std::string program_part(std::string_view name, const ContainerSpec& container,
                         const std::vector<std::string>& arguments) {
  auto out = fmt::format(
      "        - name: {}\n"
      "          image: {}\n"
      "          args:\n",
      name, scalar(container.image));
  for (const auto& word : arguments) out += fmt::format("            - {}\n", scalar(word));
  if (!container.environment.empty()) out += "          env:\n";
  for (const auto& [variable, value] : container.environment) {
    out += fmt::format("            - name: {}\n              value: {}\n", yaml_scalar(variable),
                       scalar(value));
  }
  return out;
}

std::string mounts(const Deployment& deployment) {
  std::string out =
      "          volumeMounts:\n"
      "            - name: shm\n"
      "              mountPath: /dev/shm\n";
  for (std::size_t i = 0; i < deployment.volumes.size(); ++i) {
    const auto& volume = deployment.volumes[i];
    out += fmt::format("            - name: {}\n              mountPath: {}\n", volume_name(i),
                       yaml_scalar(volume.target));
    if (volume.is_read_only) out += "              readOnly: true\n";
  }
  return out;
}

// Runs to its end in each pod before the server starts there.
std::string first_part(const Deployment& deployment, const ContainerSpec& container) {
  if (deployment.first_arguments.empty()) return "";
  return "      initContainers:\n" + program_part("first", container, deployment.first_arguments) +
         mounts(deployment);
}

std::string container_part(const Deployment& deployment, const ContainerSpec& container,
                           const std::string& resources) {
  auto out = program_part("server", container, container.arguments);
  out += fmt::format(
      "          ports:\n"
      "            - name: http\n"
      "              containerPort: {}\n",
      server_facts(deployment.api).port);
  out += resources;
  out += probe("startupProbe", deployment, kStartupProbes) + probe("readinessProbe", deployment, 1);
  return out + mounts(deployment);
}

std::string volume_part(const Deployment& deployment) {
  auto out = fmt::format(
      "      volumes:\n"
      "        - name: shm\n"
      "          emptyDir:\n"
      "            medium: Memory\n"
      "            sizeLimit: {}\n",
      yaml_scalar(quantity(deployment.shm_bytes)));
  const auto& facts = server_facts(deployment.api);
  for (std::size_t i = 0; i < deployment.volumes.size(); ++i) {
    const auto& volume = deployment.volumes[i];
    out += fmt::format("        - name: {}\n", volume_name(i));
    if (volume.is_folder()) {
      out += fmt::format("          hostPath:\n            path: {}\n", yaml_scalar(volume.source));
    } else if (volume.source == facts.cache_volume) {
      out += "          emptyDir: {}\n";  // ours alone: no claim of that name need exist
    } else {
      out += fmt::format("          persistentVolumeClaim:\n            claimName: {}\n",
                         yaml_scalar(volume.source));
    }
  }
  return out;
}

std::string service_text(const Deployment& deployment) {
  return fmt::format(
      "---\n"
      "apiVersion: v1\n"
      "kind: Service\n"
      "metadata:\n"
      "  name: {0}\n"
      "  labels:\n"
      "    app.kubernetes.io/name: {0}\n"
      "spec:\n"
      "  selector:\n"
      "    app.kubernetes.io/name: {0}\n"
      "  ports:\n"
      "    - name: http\n"
      "      port: {1}\n"
      "      targetPort: http\n",
      yaml_scalar(deployment.name), deployment.containers.front().host_port);
}

// Only what every pod may say: order and places are the cluster's.
ContainerSpec without_device_order(ContainerSpec container) {
  auto& variables = container.environment;
  variables.erase(std::remove_if(variables.begin(), variables.end(),
                                 [](const auto& variable) {
                                   return variable.name == "CUDA_VISIBLE_DEVICES" ||
                                          variable.name == "HIP_VISIBLE_DEVICES";
                                 }),
                  variables.end());
  return container;
}

}  // namespace

Result<std::string> kubernetes_resource(const ContainerDevice& device) {
  if (is_mig(device)) {
    if (is_profile(device.mig_profile)) return "nvidia.com/mig-" + device.mig_profile;
    return Error{
        ErrorKind::InvalidArgument,
        fmt::format("Kubernetes knows MIG slices by profile, such as mig-1g.5gb: {}", device.id)};
  }
  return std::string(is_amd(device) ? "amd.com/gpu" : "nvidia.com/gpu");
}

Result<std::string> kubernetes_text(const Deployment& deployment) {
  const auto container = without_device_order(deployment.containers.front());
  std::string resources;
  if (!container.devices.empty()) {
    const auto resource = MUSTER_TRY(kubernetes_resource(container.devices.front()));
    for (const auto& other : deployment.containers) {
      const auto its_resource = MUSTER_TRY(kubernetes_resource(other.devices.front()));
      if (its_resource != resource || other.image != container.image) {
        return Error{ErrorKind::InvalidArgument,
                     "replicas in Kubernetes are equal, so their devices must be of one type"};
      }
    }
    resources = fmt::format("          resources:\n            limits:\n              {}: {}\n",
                            resource, container.devices.size());
  }
  auto out = fmt::format(
      "apiVersion: apps/v1\n"
      "kind: Deployment\n"
      "metadata:\n"
      "  name: {0}\n"
      "  labels:\n"
      "    app.kubernetes.io/name: {0}\n"
      "spec:\n"
      "  replicas: {1}\n"
      "  selector:\n"
      "    matchLabels:\n"
      "      app.kubernetes.io/name: {0}\n"
      "  template:\n"
      "    metadata:\n"
      "      labels:\n"
      "        app.kubernetes.io/name: {0}\n"
      "    spec:\n"
      // A service called "vllm" would set VLLM_PORT, which vLLM reads for itself (vLLM docs,
      // configuration/env_vars.md).
      "      enableServiceLinks: false\n",
      yaml_scalar(deployment.name), deployment.containers.size());
  if (const auto seconds = server_facts(deployment.api).stop_seconds; seconds > 0) {
    out += fmt::format("      terminationGracePeriodSeconds: {}\n", seconds);
  }
  out += first_part(deployment, container) + "      containers:\n";
  out += container_part(deployment, container, resources);
  out += volume_part(deployment);
  return out + service_text(deployment);
}

}  // namespace muster

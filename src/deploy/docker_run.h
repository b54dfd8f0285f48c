#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "deploy/deployment.h"

namespace muster {

/// The labels by which the containers of a deployment are found again.
inline constexpr std::string_view kDeploymentLabel = "muster.deployment";
inline constexpr std::string_view kApiLabel = "muster.api";
inline constexpr std::string_view kModelLabel = "muster.model";

/// `docker run` for one container of a deployment, as the words of a command line: no shell reads
/// them, so nothing is quoted for one.
///
/// Exactly the chosen devices are asked for, never `all`. The value of `--gpus` is one CSV record
/// to the client: commas inside `device=` stand in its double quotes, or the client takes the
/// second id for a count (docker/cli opts/gpus.go; nvidia-docker #1026, #1257).
///
/// Errors: InvalidArgument: a device without a name. Threads: pure.
Result<std::vector<std::string>> docker_run_words(const Deployment& deployment,
                                                  const ContainerSpec& container);

/// The run that goes before all containers, as `Deployment::first_arguments` has it: it shows what
/// it does, ends by itself and is removed. Empty where there is none. Threads: pure.
std::vector<std::string> first_run_words(const Deployment& deployment);

/// While a model is read and measured, a server that is not ready yet is not unhealthy.
inline constexpr std::string_view kHealthStartPeriod = "10m";

/// How a container is asked whether its server is ready, by a program inside: "curl", "-fsS", …
/// Empty where the image sees to it.
std::vector<std::string> health_words(ServerApi api);

/// The same without the leading `docker run --detach`, as the value of `--gpus` alone:
/// `device=2`, `"device=GPU-1,GPU-2"`. Empty for devices that are not asked for that way.
std::string gpus_value(const std::vector<ContainerDevice>& devices);

/// "1g", "512m", "4096": units of 1024, as docker, compose and Kubernetes (with "i") read them.
std::string memory_size_text(std::uint64_t bytes);

/// "127.0.0.1:8080:80", with brackets around an IPv6 address.
std::string published_port(const Deployment& deployment, const ContainerSpec& container);

/// "source:target" or "source:target:ro".
std::string volume_text(const ContainerVolume& volume);

/// The device files, groups and rights that a container on AMD GPUs needs besides the render nodes.
/// Sources: ROCm, "Running ROCm Docker containers"; vLLM, docs/deployment/docker.rocm.inc.md.
inline constexpr std::string_view kRocmComputeFile = "/dev/kfd";
inline constexpr std::string_view kRocmCapability = "SYS_PTRACE";
inline constexpr std::string_view kRocmSecurity = "seccomp=unconfined";

/// The groups by number where they are known: a name is looked up inside the image, which may lack
/// it. Without numbers "video", which every image has.
std::vector<std::string> rocm_groups(const Deployment& deployment);

}  // namespace muster

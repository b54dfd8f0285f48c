#pragma once

#include <string>

#include "base/result.h"
#include "deploy/deployment.h"

namespace muster {

/// A deployment as a Kubernetes Deployment and a Service. A pod cannot name a GPU, only how many of
/// which resource it takes; the cluster chooses, and numbers them from 0 inside. Equal containers
/// become replicas. `$` is doubled, or Kubernetes would put variables in.
///
/// Errors: InvalidArgument: a MIG slice without its profile, replicas on different devices.
/// Sources: Kubernetes API reference 1.32, "Schedule GPUs" (GPUs stand in limits); NVIDIA
/// k8s-device-plugin README and NVIDIA "MIG Support in Kubernetes" (nvidia.com/mig-1g.5gb); ROCm
/// k8s-device-plugin (amd.com/gpu); vLLM docs/deployment/k8s.md (memory at /dev/shm, probes on
/// /health).
Result<std::string> kubernetes_text(const Deployment& deployment);

/// "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "amd.com/gpu".
///
/// Errors: as `kubernetes_text`.
Result<std::string> kubernetes_resource(const ContainerDevice& device);

}  // namespace muster

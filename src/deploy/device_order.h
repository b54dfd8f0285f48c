#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "deploy/container_request.h"

namespace muster {

/// How the devices of a container are numbered inside it.
///
/// The container runtime hands over the chosen GPUs alone, and inside they are numbered from 0 in
/// PCI order, whatever the order of the list and the numbers on the host were (nvidia-docker #907).
/// CUDA on its own sorts by speed first, unless CUDA_DEVICE_ORDER is PCI_BUS_ID. Sources: CUDA C++
/// Programming Guide, "CUDA Environment Variables"; ROCm, "GPU isolation techniques".
struct InnerOrder {
  /// Device i of the request is number `container_index[i]` in the container. Empty where the
  /// devices' places on the host are not known.
  std::vector<std::uint32_t> container_index;
  /// What has to be set inside, so that the server numbers the devices as the request does.
  std::vector<EnvironmentVariable> environment;
};

InnerOrder inner_order(std::span<const ContainerDevice> devices);

}  // namespace muster

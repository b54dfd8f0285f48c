#include "hw/nvml.h"

#include <fmt/format.h>

#include "hw/nvml_identity.h"

namespace muster {

Result<std::vector<Device>> find_nvidia_gpus(const std::vector<std::string>& libraries) {
  NoWatch watch;
  NvmlCaller call(watch);
  const auto library = MUSTER_TRY(NvmlLibrary::open(libraries, watch));
  const auto gpus = MUSTER_TRY(list_nvml_gpus(*library, call, "/"));
  std::vector<Device> devices;
  for (const auto& gpu : gpus) {
    if (gpu.handle != nullptr) devices.push_back(gpu.identity.device);
  }
  if (devices.empty()) {
    return Error{ErrorKind::Unavailable,
                 fmt::format("the NVIDIA driver can open none of its {} GPUs", gpus.size())};
  }
  return devices;
}

}  // namespace muster

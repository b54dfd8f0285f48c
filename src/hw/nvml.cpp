#include "hw/nvml.h"

#include <fmt/format.h>

#include <algorithm>

#include "hw/nvml_identity.h"

namespace muster {

Result<std::vector<Device>> find_nvidia_gpus(const std::vector<std::string>& libraries) {
  NoWatch watch;
  NvmlCaller call(watch);
  const auto library = MUSTER_TRY(NvmlLibrary::open(libraries, watch));
  const auto count = MUSTER_TRY(count_nvml_gpus(*library, call));
  std::vector<NvmlGpu> gpus;
  for (unsigned index = 0; index < count; ++index) {
    auto gpu = read_nvml_gpu(*library, call, index, "/");
    if (gpu.handle != nullptr) gpus.push_back(std::move(gpu));
  }
  if (gpus.empty()) {
    return Error{ErrorKind::Unavailable,
                 fmt::format("the NVIDIA driver can open none of its {} GPUs", count)};
  }
  std::stable_sort(gpus.begin(), gpus.end(), is_before_on_bus);
  std::vector<Device> devices;
  for (const auto& gpu : gpus) {
    devices.push_back(gpu.identity.device);
    devices.back().index = static_cast<std::uint32_t>(devices.size() - 1);
  }
  return devices;
}

}  // namespace muster

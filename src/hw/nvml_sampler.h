#pragma once

#include <filesystem>
#include <memory>

#include "hw/nvml_identity.h"

namespace muster {

/// The sampler of a whole GPU. link_count: NVLinks that it has. root: in front of /proc.
///
/// Fast tier: three calls (fields, utilisation, clock events); drivers that do not know the power
/// fields need one more. Utilisation is not asked of a GPU in MIG mode, which has none.
std::unique_ptr<DeviceSampler> make_nvml_gpu_sampler(std::shared_ptr<const NvmlLibrary> library,
                                                     const NvmlGpu& gpu, unsigned link_count,
                                                     const std::filesystem::path& root,
                                                     NvmlCaller& call);

}  // namespace muster

#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "hw/nvml/nvml_gpm.h"
#include "hw/nvml/nvml_identity.h"

namespace muster {

/// What a GPU's sampler is made of beside its identity.
struct NvmlGpuParts {
  unsigned link_count = 0;               // NVLinks that it has
  Tier energy_tier = Tier::Fast;         // Medium where its counter takes long to answer
  std::unique_ptr<NvmlGpm> gpm;          // nullptr: not offered
  std::optional<double> pcie_bytes_max;  // a second over its PCIe link, where there is no GPM
};

/// Asks for the parts; `gpu` is open. The tier of the energy counter goes by what asking for it
/// takes.
///
/// Cost: up to three looks at the energy counter, 4 ms each on an H100.
NvmlGpuParts read_gpu_parts(const std::shared_ptr<const NvmlLibrary>& library, const NvmlGpu& gpu,
                            NvmlCaller& call);

/// The sampler of a whole GPU. root: in front of /proc.
///
/// Fast tier: two calls (fields, utilisation); drivers that do not know the power
/// fields need one more. Utilisation is not asked of a GPU in MIG mode, which has none. Energy
/// is read in the tier that `parts` say and in no other: in visits without it, it is unset.
std::unique_ptr<DeviceSampler> make_nvml_gpu_sampler(std::shared_ptr<const NvmlLibrary> library,
                                                     const NvmlGpu& gpu, NvmlGpuParts parts,
                                                     const std::filesystem::path& root);

}  // namespace muster

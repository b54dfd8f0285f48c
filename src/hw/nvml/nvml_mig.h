#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "hw/nvml/nvml_gpm.h"
#include "hw/nvml/nvml_identity.h"

namespace muster {

/// A MIG slice: a compute instance with its GPU instance. `parent` is the GPU's UUID; where the
/// driver tells none, its PCI address.
struct NvmlSlice {
  NvmlDevice handle = nullptr;
  DeviceIdentity identity;       // Device::index counts the slices of the GPU
  std::unique_ptr<NvmlGpm> gpm;  // nullptr: not offered
};

/// The slices of a GPU in the driver's order; none where MIG is off.
std::vector<NvmlSlice> list_nvml_slices(const std::shared_ptr<const NvmlLibrary>& library,
                                        const NvmlGpu& gpu, NvmlCaller& call);

/// "1g.18gb", or "1c.3g.71gb" for part of a GPU instance: NVIDIA's name of a slice's profile by its
/// sizes. The memory is the slice's share of the GPU's, in eighths rounded up, of GiB.
/// Source: NVIDIA MIG User Guide, "MIG Device Names"; NVIDIA/go-nvlib, pkg/nvlib/device,
/// mig_profile.go, getMigMemorySizeGB.
std::string mig_profile_name(const NvmlAttributes& attributes, std::uint64_t gpu_memory_bytes);

/// The sampler of a slice: its memory, its share of the multiprocessors, its processes. Power,
/// clocks and the like are the whole GPU's and only there.
std::unique_ptr<DeviceSampler> make_nvml_slice_sampler(std::shared_ptr<const NvmlLibrary> library,
                                                       NvmlSlice slice,
                                                       const std::filesystem::path& root);

}  // namespace muster

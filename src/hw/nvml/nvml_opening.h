#pragma once

#include <memory>
#include <vector>

#include "hw/nvml/nvml_links.h"
#include "hw/nvml/nvml_mig.h"
#include "hw/nvml/nvml_sampler.h"

namespace muster {

/// All that is asked of one GPU before it is watched.
struct OpenedNvmlGpu {
  NvmlGpu gpu;
  NvmlGpuParts parts;
  std::vector<NvmlLinkEnd> link_ends;
  std::vector<NvmlSlice> slices;
};

/// The GPUs that the driver lists, and what keeps the calls alive that did not return. They are in
/// PCI order; one that tells no address, as one that cannot be opened, is where the driver counts
/// it.
struct OpenedNvmlGpus {
  std::vector<OpenedNvmlGpu> gpus;
  std::shared_ptr<void> waiting;  // its end waits for the driver
};

/// Opens `count` GPUs, each in a thread of its own: one whose driver calls hang does not hold up
/// the others. It is listed as one that cannot be opened (NVML 10, timeout).
///
/// A GPU has ten seconds; once another is open, four times as long as the slowest that is, and at
/// least half a second: opening takes as long on all GPUs of a machine, one after the other where
/// the driver lets only one in. `watch` is told of the calls of the others when they have returned.
OpenedNvmlGpus open_nvml_gpus(const std::shared_ptr<const NvmlLibrary>& library, unsigned count,
                              const std::filesystem::path& root, CallWatch& watch);

}  // namespace muster

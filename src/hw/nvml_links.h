#pragma once

#include <vector>

#include "hw/nvml_identity.h"
#include "spec/machine.h"

namespace muster {

/// How many NVLinks a GPU has, up or not; 0 where it has none or the driver does not tell.
unsigned nvlink_count(const NvmlFunctions& nvml, NvmlDevice device, NvmlCaller& call);

/// How the GPUs reach each other, in their order. Two GPUs that both reach switches are joined by
/// as many links as the one with fewer has to them. Else the nearest thing they share over PCIe.
/// Without a driver that tells (no such function, a GPU that is lost) a pair is `Sys`, the
/// farthest.
LinkMatrix read_nvml_links(const NvmlFunctions& nvml, const std::vector<NvmlGpu>& gpus,
                           const std::vector<unsigned>& link_counts, NvmlCaller& call);

}  // namespace muster

#pragma once

#include <optional>
#include <vector>

#include "hw/nvml/nvml_identity.h"
#include "spec/machine.h"

namespace muster {

/// How many NVLinks a GPU has, up or not; 0 where it has none or the driver does not tell.
unsigned nvlink_count(const NvmlFunctions& nvml, NvmlDevice device, NvmlCaller& call);

/// Where an NVLink that is up goes.
struct NvmlLinkEnd {
  std::optional<NvmlPciInfo> place;
  bool is_switch = false;
};

/// The links of a GPU that are up.
std::vector<NvmlLinkEnd> read_link_ends(const NvmlFunctions& nvml, NvmlDevice device,
                                        unsigned link_count, NvmlCaller& call);

/// How the GPUs reach each other, in their order; link_ends: of each. Two GPUs that both reach
/// switches are joined by as many links as the one with fewer has to them. Else the nearest thing
/// they share over PCIe. Without a driver that tells (no such function, a GPU that is lost) a pair
/// is `Sys`, the farthest.
LinkMatrix join_nvml_links(const NvmlFunctions& nvml, const std::vector<NvmlGpu>& gpus,
                           const std::vector<std::vector<NvmlLinkEnd>>& link_ends,
                           NvmlCaller& call);

}  // namespace muster

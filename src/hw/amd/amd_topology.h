#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "spec/machine.h"

namespace muster {

/// A GPU, or a partition of one, as the compute driver (KFD) knows it.
struct KfdGpu {
  std::uint32_t node = 0;                  // number of its folder
  std::uint64_t gpu_id = 0;                // names its files under kfd/proc
  std::uint64_t pci = 0;                   // domain << 16 | bus << 8 | device << 3 | function
  std::uint32_t partition = 0;             // within the GPU
  std::uint64_t memory_bytes = 0;          // of its first bank
  std::filesystem::path used_memory_file;  // how much of that is in use
  bool has_cpu_cores = false;              // an APU of the kind that is one node with its CPU
};

/// One link between two nodes.
struct KfdLink {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  bool is_xgmi = false;
  std::uint32_t width = 1;  // links side by side
};

struct KfdTopology {
  std::vector<KfdGpu> gpus;  // in order of their nodes
  std::vector<KfdLink> links;
};

/// Empty where there is no compute driver. root: in front of /sys.
///
/// Source: Linux, drivers/gpu/drm/amd/amdkfd/kfd_topology.c (properties; location_id, whose bits 28
/// to 31 are the partition), kfd_crat.h (CRAT_IOLINK_TYPE_XGMI 11); kfd_crat.c (min_bandwidth is
/// that of one link, max_bandwidth of all).
KfdTopology read_kfd_topology(const std::filesystem::path& root);

/// Labels among GPUs: XGMI with its width where a link says so, else by the NUMA nodes the GPUs are
/// at. `nodes[i]`: the KFD node of GPU i.
LinkMatrix kfd_links(const KfdTopology& topology,
                     const std::vector<std::optional<std::uint32_t>>& nodes,
                     const std::vector<std::optional<std::uint32_t>>& numa_nodes);

}  // namespace muster

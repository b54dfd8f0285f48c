#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster {

/// A NUMA node with the allowed part of its cores.
struct NumaNode {
  std::uint32_t os_index = 0;
  std::uint64_t memory_bytes = 0;                 // local memory; 0 where the system does not tell
  std::vector<std::vector<std::uint32_t>> cores;  // the allowed logical CPUs of each core
};

/// The allowed cores by NUMA node; nodes without one (memory only, or masked out) are left out.
/// Each core is in exactly one node, also where two nodes share their cores (HBM beside DDR).
///
/// topology: hwloc's synthetic description, or empty for this machine.
/// Errors: Unavailable when hwloc cannot read the topology or no CPU is allowed.
Result<std::vector<NumaNode>> read_cpu_layout(const std::string& topology,
                                              const std::vector<std::uint32_t>& allowed_cpus);

/// The CPUs that this process may run on, ascending.
Result<std::vector<std::uint32_t>> affinity_cpus();

/// Keeps the first `core_count` cores, nodes in order, and drops the nodes that have none left.
void keep_cores(std::vector<NumaNode>& nodes, std::size_t core_count);

}  // namespace muster

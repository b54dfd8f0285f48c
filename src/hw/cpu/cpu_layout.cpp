// hwloc reads the topology; what this adds is the affinity mask and a partition: each allowed core
// belongs to exactly one node, even where nodes of different memory share their cores, or lanes
// would be counted twice. The first allowed logical CPU stands for a core. The affinity mask is
// read with growing sizes, since the kernel does not say how long its own is.

#include "hw/cpu/cpu_layout.h"

#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>

namespace muster {
namespace {

struct TopologyDeleter {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyDeleter>;

Result<Topology> load_topology(const std::string& synthetic) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) {
    return Error{ErrorKind::ResourceExhausted, "hwloc cannot make a topology"};
  }
  Topology topology(raw);
  if (!synthetic.empty() && hwloc_topology_set_synthetic(raw, synthetic.c_str()) != 0) {
    return Error{ErrorKind::InvalidArgument, "not a synthetic topology of hwloc: " + synthetic};
  }
  // Nothing here reads caches. Groups stay: without them a NUMA node takes over the CPUs of its
  // parent.
  hwloc_topology_set_cache_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  if (hwloc_topology_load(raw) != 0) {
    return Error{ErrorKind::Unavailable, "hwloc cannot read the topology of this machine"};
  }
  return topology;
}

// The logical CPUs of `object` that are in `allowed`, ascending.
std::vector<std::uint32_t> allowed_of(const hwloc_obj& object,
                                      const std::vector<std::uint32_t>& allowed) {
  std::vector<std::uint32_t> cpus;
  for (const auto cpu : allowed) {
    if (hwloc_bitmap_isset(object.cpuset, cpu) != 0) cpus.push_back(cpu);
  }
  return cpus;
}

// Adds the allowed cores of `node` that no earlier node has. Some virtual machines show no cores,
// only processing units: each then counts as a core.
void add_cores(hwloc_topology_t topology, const hwloc_obj& node,
               const std::vector<std::uint32_t>& allowed, std::set<std::uint32_t>& taken,
               NumaNode& result) {
  const bool has_cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0;
  const auto type = has_cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  hwloc_obj_t core = nullptr;
  while ((core = hwloc_get_next_obj_inside_cpuset_by_type(topology, node.cpuset, type, core)) !=
         nullptr) {
    auto cpus = allowed_of(*core, allowed);
    if (!cpus.empty() && taken.insert(cpus.front()).second) {
      result.cores.push_back(std::move(cpus));
    }
  }
}

}  // namespace

Result<std::vector<NumaNode>> read_cpu_layout(const std::string& topology,
                                              const std::vector<std::uint32_t>& allowed_cpus) {
  const auto loaded = MUSTER_TRY(load_topology(topology));
  std::vector<NumaNode> nodes;
  std::set<std::uint32_t> taken;
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(loaded.get(), HWLOC_OBJ_NUMANODE, object)) !=
         nullptr) {
    NumaNode node{.os_index = object->os_index,
                  .memory_bytes = object->attr->numanode.local_memory,
                  .cores = {}};
    add_cores(loaded.get(), *object, allowed_cpus, taken, node);
    if (!node.cores.empty()) nodes.push_back(std::move(node));
  }
  if (nodes.empty()) {
    return Error{ErrorKind::Unavailable, "no CPU of this machine is allowed to this process"};
  }
  return nodes;
}

Result<std::vector<std::uint32_t>> affinity_cpus() {
  // The kernel refuses a mask shorter than its own (EINVAL); 2^16 CPUs is beyond any it is built
  // for.
  for (int count = 1024; count <= 1 << 16; count *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(
        CPU_ALLOC(count), [](cpu_set_t* set) { CPU_FREE(set); });
    const auto size = CPU_ALLOC_SIZE(count);
    if (sched_getaffinity(0, size, mask.get()) != 0) {
      if (errno == EINVAL) continue;
      return system_error("affinity mask", "read", errno);
    }
    std::vector<std::uint32_t> cpus;
    for (std::uint32_t cpu = 0; cpu < static_cast<std::uint32_t>(count); ++cpu) {
      if (CPU_ISSET_S(cpu, size, mask.get())) cpus.push_back(cpu);
    }
    return cpus;
  }
  return Error{ErrorKind::Unavailable, "the affinity mask of this process is too long to read"};
}

void keep_cores(std::vector<NumaNode>& nodes, std::size_t core_count) {
  for (auto& node : nodes) {
    node.cores.resize(std::min(node.cores.size(), core_count));
    core_count -= node.cores.size();
  }
  std::erase_if(nodes, [](const NumaNode& node) { return node.cores.empty(); });
}

}  // namespace muster

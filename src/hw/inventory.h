#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "spec/device.h"

namespace muster {

/// Where the facts about a machine are read. The defaults are this machine; tests put a folder and
/// a synthetic topology in their place.
struct MachineSources {
  std::filesystem::path root = "/";  // in front of /proc and of every cgroup mount point
  std::string topology;  // hwloc's synthetic form, "numa:2 core:4 pu:2"; empty: the real one
  std::optional<std::vector<std::uint32_t>> allowed_cpus;  // nullopt: the affinity mask
};

/// What is on this machine beside its GPUs, which only a sampler process asks for (open_nvml),
/// within the affinity mask and the cgroups of this process.
///
/// `Inventory::cpus` has a device for each NUMA node with allowed cores; its `cpus` are the first
/// allowed logical CPU of each core, so that a lane per entry is a lane per core. A cgroup's CPU
/// quota of Q cores keeps only the first ceil(Q) of them: more lanes would only be throttled.
///
/// Errors: Unavailable when the topology cannot be read. Cost: about 5 ms. Threads: thread-safe.
Result<Inventory> find_inventory(const MachineSources& sources = {});

/// The stand-ins for GPUs that this worker can open: those of the library beside it, else none.
std::vector<Device> find_standins(const std::filesystem::path& worker_program);

}  // namespace muster

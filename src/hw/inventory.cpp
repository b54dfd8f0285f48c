// What a process may use, not what the machine has: affinity mask, CPU quota and memory limits of
// the cgroups are taken off before anything is counted. /proc/meminfo and /proc/cpuinfo know
// nothing of containers, so limits are read beside them and the smaller figure holds. All files are
// found under one root, which lets tests put a folder of recorded files in its place.

#include "hw/inventory.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/file.h"
#include "base/text.h"
#include "hw/cpu/cgroup.h"
#include "hw/cpu/cpu_features.h"
#include "hw/cpu/cpu_layout.h"
#include "hw/cpu/host_memory.h"
#include "spec/standin_device.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// /proc/cpuinfo grows with the cores: about 1.5 kB each.
constexpr std::uint64_t kFileSizeMax = 16 << 20;

// What stands after "name :" in the first such line of a file under /proc; empty if there is none.
std::string proc_value(const fs::path& path, std::string_view name) {
  const auto text = read_file(path, kFileSizeMax);
  if (!text) return {};
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(':');
    if (colon != std::string::npos && trim(std::string_view(line).substr(0, colon)) == name) {
      return std::string(trim(std::string_view(line).substr(colon + 1)));
    }
  }
  return {};
}

// MemAvailable since Linux 3.14: proc(5).
std::optional<std::uint64_t> memory_available(std::string_view meminfo,
                                              const CgroupLimits& limits) {
  const auto system = meminfo_bytes(meminfo, "MemAvailable");
  const auto cgroup = limits.memory_available_bytes;
  return system && cgroup ? std::min(*system, *cgroup) : (system ? system : cgroup);
}

Device cpu_device(std::uint32_t index, const NumaNode& node, const Inventory& inventory) {
  // The memory of the only node is the machine's; some virtual machines tell less for the node.
  const bool is_known = node.memory_bytes > 0 && inventory.numa_node_count > 1;
  Device device;
  device.kind = DeviceKind::Cpu;
  device.index = index;
  device.model = inventory.cpu_model;
  auto memory = is_known ? node.memory_bytes : inventory.memory_total_bytes;
  if (inventory.memory_limit_bytes) memory = std::min(memory, *inventory.memory_limit_bytes);
  device.memory_total_bytes = memory;
  for (const auto& core : node.cores) device.cpus.push_back(core.front());
  return device;
}

}  // namespace

Result<Inventory> find_inventory(const MachineSources& sources) {
  Inventory inventory;
  inventory.cpu_model = proc_value(sources.root / "proc/cpuinfo", "model name");
  inventory.instruction_sets = instruction_sets(read_cpuid());
  const auto meminfo = read_file(sources.root / "proc/meminfo", kFileSizeMax);
  const std::string_view memory = meminfo ? std::string_view(*meminfo) : std::string_view();
  inventory.memory_total_bytes = meminfo_bytes(memory, "MemTotal").value_or(0);
  const auto limits = read_cgroup_limits(sources.root);
  inventory.memory_available_bytes = memory_available(memory, limits);
  // A limit above what is there limits nothing.
  if (limits.memory_bytes && *limits.memory_bytes < inventory.memory_total_bytes) {
    inventory.memory_limit_bytes = limits.memory_bytes;
  }

  if (sources.allowed_cpus) {
    inventory.allowed_cpus = *sources.allowed_cpus;
  } else {
    inventory.allowed_cpus = MUSTER_TRY(affinity_cpus());
  }
  auto nodes = MUSTER_TRY(read_cpu_layout(sources.topology, inventory.allowed_cpus));
  inventory.numa_node_count = static_cast<std::uint32_t>(nodes.size());
  for (const auto& node : nodes) {
    inventory.core_count += static_cast<std::uint32_t>(node.cores.size());
  }
  if (limits.cpu_cores) {
    inventory.cpu_limit_cores = limits.cpu_cores;
    keep_cores(nodes, static_cast<std::size_t>(std::ceil(*limits.cpu_cores)));
  }
  for (const auto& node : nodes) {
    const auto index = static_cast<std::uint32_t>(inventory.cpus.size());
    inventory.cpus.push_back(cpu_device(index, node, inventory));
  }

  return inventory;
}

std::vector<Device> find_standins(const fs::path& worker_program) {
  std::error_code ignored;
  std::vector<Device> devices;
  if (!fs::exists(worker_program.parent_path() / kStandinLibrary, ignored)) return devices;
  for (std::uint32_t i = 0; i < kStandinCount; ++i) {
    auto& device = devices.emplace_back();
    device.kind = DeviceKind::Standin;
    device.index = i;
    device.model = "stand-in for a GPU";
    device.memory_total_bytes = kStandinMemoryBytes;
  }
  return devices;
}

}  // namespace muster

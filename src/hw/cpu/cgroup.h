#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "hw/kernel_file.h"

namespace muster {

/// The tightest limits among the cgroups of this process and all their ancestors that are visible.
struct CgroupLimits {
  std::optional<std::uint64_t> memory_bytes;  // nullopt: no limit
  // What is left below the limits: the least of limit - usage + page cache that can be dropped.
  std::optional<std::uint64_t> memory_available_bytes;
  std::optional<double> cpu_cores;  // quota divided by period; nullopt: no limit
};

/// Reads cgroup v2 and v1, wherever they are mounted. What cannot be read limits nothing.
///
/// root: the folder in front of /proc and of the mount points; "/" but for tests.
/// Source: Linux Documentation/admin-guide/cgroup-v2.rst (memory.max, memory.current,
/// memory.stat inactive_file, cpu.max),
/// cgroup-v1/memory.rst (memory.limit_in_bytes), scheduler/sched-bwc.rst (cpu.cfs_quota_us),
/// proc(5) (mountinfo).
CgroupLimits read_cgroup_limits(const std::filesystem::path& root);

/// The memory limits alone, read again and again: the groups are looked up when it is made, and
/// again by making another. Limits are set seldom and used memory moves all the time, so each is
/// read at a pace of its own; the use of a group without a limit is not read at all.
///
/// Memory counts, swap does not (memory.max, not memory.swap.max; memory.limit_in_bytes, not
/// memory.memsw). Threads: not thread-safe; owned by one sampler.
class CgroupMemory {
 public:
  explicit CgroupMemory(const std::filesystem::path& root);

  /// What the limits are; before the first `read`. What cannot be read limits nothing.
  void read_limits(CallWatch& watch, DeviceSample& sample);

  /// What is left below them. Without `cpu_cores`.
  CgroupLimits read(CallWatch& watch, DeviceSample& sample);

 private:
  struct Group {
    KernelFile limit;
    KernelFile usage;
    KernelFile stat;
    bool is_v2 = false;
    bool is_own = false;                       // of this process, not above it
    std::optional<std::uint64_t> limit_bytes;  // as it was last read
  };
  std::vector<Group> groups_;
};

}  // namespace muster

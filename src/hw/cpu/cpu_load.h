#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace muster {

/// Ticks of one logical CPU since the system started.
struct CpuTicks {
  std::uint64_t busy = 0;  // user, nice, system, irq, softirq, steal
  std::uint64_t idle = 0;  // idle, iowait
};

/// The ticks of these CPUs, in their order; nullopt for one without a line (it is offline).
///
/// What a virtual CPU runs is counted in `user` already, so `guest` is not added. Stolen time
/// counts as busy: the core was not to be had. Source: proc(5), /proc/stat; kernel/sched/cputime.c.
std::vector<std::optional<CpuTicks>> parse_cpu_ticks(std::string_view proc_stat,
                                                     std::span<const std::uint32_t> cpus);

/// Busy shares between two looks.
struct CpuLoad {
  std::optional<double> mean;  // over the cores that have one; nullopt: none has
  std::vector<float> cores;    // one for each CPU; empty when one of them has none
};

/// `iowait` may fall, as proc(5) says; a part that fell counts as standing still. A CPU that got no
/// tick, or was offline at one of the looks, has no share.
CpuLoad load_between(std::span<const std::optional<CpuTicks>> before,
                     std::span<const std::optional<CpuTicks>> after);

}  // namespace muster

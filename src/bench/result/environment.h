#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster {

/// The machine on which the generator runs, as far as it can explain a figure. What the system does
/// not tell is absent.
struct BenchEnvironment {
  std::string cpu_model = {};
  std::uint32_t logical_cpus = 0;              // that this process may use
  std::uint32_t core_count = 0;                // physical cores among them
  std::optional<double> cpu_limit_cores = {};  // of its cgroups
  std::vector<std::string> instruction_sets = {};
  std::optional<double> clock_hertz = {};      // of the first CPU at the start
  std::optional<double> clock_max_hertz = {};  // the most that it may reach
  std::string governor = {};                   // of its frequency; empty: not told
  std::string clock_source = {};               // of the kernel: "tsc"
  std::uint64_t memory_bytes = 0;
  std::string kernel = {};
  std::string hypervisor = {};  // "KVM"; empty: none is known of
  std::string build = {};       // of muster
};

/// What the machine did during a run, from /proc/stat and /proc/loadavg.
struct MachineUse {
  std::optional<double> busy_share;    // of all CPUs
  std::optional<double> stolen_share;  // that the hypervisor gave to others
  std::optional<double> others_share;  // busy, but neither with us nor with a server of ours
  std::array<std::optional<double>, 3> load_average{};  // at the end: 1, 5 and 15 minutes
};

/// Threads: reads files and runs cpuid. Cost: about 5 ms.
BenchEnvironment find_environment();

/// Ticks of all CPUs together.
struct MachineTicks {
  std::uint64_t busy = 0;
  std::uint64_t idle = 0;
  std::uint64_t stolen = 0;
};

/// The line "cpu" of /proc/stat; nullopt when there is none. Source: proc(5). Threads: pure.
std::optional<MachineTicks> parse_machine_ticks(std::string_view proc_stat);

/// The shares of what lies between two looks; a counter that went back, as some do when a virtual
/// machine is moved, has counted nothing. Threads: pure.
///
/// own_ticks: of what the machine did for us.
MachineUse machine_use(const MachineTicks& begin, const MachineTicks& end, double own_ticks);

/// Watches the machine from its making on.
///
/// Threads: not thread-safe.
class MachineWatch {
 public:
  MachineWatch();
  /// own_cpu_seconds: of this process and of a server that it has started, meanwhile.
  MachineUse use(double own_cpu_seconds) const;

 private:
  std::optional<MachineTicks> begin_;
};

}  // namespace muster

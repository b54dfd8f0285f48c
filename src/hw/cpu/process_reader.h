#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/telemetry.h"

namespace muster {

/// The fields of /proc/PID/stat that count here.
struct ProcessStat {
  std::uint32_t pid = 0;
  std::uint32_t parent_pid = 0;    // 0: none that this process can see
  std::string command;             // may hold any bytes
  std::uint64_t cpu_ticks = 0;     // user and system, since it started
  std::uint64_t start_ticks = 0;   // when, since the system did: with the pid, which process it is
  std::uint64_t memory_pages = 0;  // resident, shared ones included
};

/// nullopt for what is no such line. Source: proc(5), /proc/PID/stat: fields 1, 2, 4, 14, 15, 22,
/// 24.
std::optional<ProcessStat> parse_process_stat(std::string_view text);

/// nullopt where there is no such process.
std::optional<ProcessStat> read_process_stat(std::uint32_t pid);

/// The processes of a machine, and what each took since the last look: by the ticks of its CPUs in
/// /proc/stat, so that no clock of ours comes in between.
///
/// Cost: one file a process. Threads: not thread-safe.
class ProcessReader {
 public:
  /// root: in front of /proc.
  explicit ProcessReader(std::filesystem::path root) : root_(std::move(root)) {}

  /// Those that run, or hold memory: at most `count_most`, those with the most CPU time first, then
  /// those with the most memory. CPU shares are unknown at the first look, and of processes that
  /// were not there at the one before. A process that ends meanwhile is left out.
  std::vector<HostProcess> read(std::size_t count_most);

 private:
  struct Look {
    std::uint64_t cpu_ticks = 0;
    std::uint64_t start_ticks = 0;
  };
  std::optional<double> cores_of(const ProcessStat& stat, double ticks_of_a_core) const;

  const std::filesystem::path root_;
  std::uint64_t machine_ticks_ = 0;  // of all CPUs at the last look; 0: there was none
  std::map<std::uint32_t, Look> last_;
};

}  // namespace muster

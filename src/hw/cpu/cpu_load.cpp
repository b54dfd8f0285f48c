// Busy shares from differences of ticks. Busy and idle are summed apart and each may only rise:
// iowait is known to fall, and a part that fell counts as standing still. Shares of cores are given
// for all cores or for none, so that a list always matches the device's cores by position.

#include "hw/cpu/cpu_load.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace muster {
namespace {

// The first eight columns: user nice system idle iowait irq softirq steal. Older kernels have
// fewer.
constexpr std::size_t kColumns = 8;
constexpr std::size_t kIdle = 3;
constexpr std::size_t kIoWait = 4;

struct CpuLine {
  std::uint32_t cpu = 0;
  CpuTicks ticks;
};

// "cpu3 10 0 5 100 2 0 1 0 0 0"; the line of the sum, "cpu  10 …", is none.
std::optional<CpuLine> parse_line(std::string_view line) {
  if (!line.starts_with("cpu")) return std::nullopt;
  const auto* end = line.data() + line.size();
  CpuLine parsed;
  auto at = std::from_chars(line.data() + 3, end, parsed.cpu);
  if (at.ec != std::errc()) return std::nullopt;
  for (std::size_t column = 0; column < kColumns; ++column) {
    while (at.ptr != end && *at.ptr == ' ') ++at.ptr;
    std::uint64_t ticks = 0;
    at = std::from_chars(at.ptr, end, ticks);
    if (at.ec != std::errc()) {
      if (column <= kIdle) return std::nullopt;
      break;
    }
    (column == kIdle || column == kIoWait ? parsed.ticks.idle : parsed.ticks.busy) += ticks;
  }
  return parsed;
}

double risen(std::uint64_t before, std::uint64_t after) {
  return after > before ? static_cast<double>(after - before) : 0.0;
}

}  // namespace

std::vector<std::optional<CpuTicks>> parse_cpu_ticks(std::string_view proc_stat,
                                                     std::span<const std::uint32_t> cpus) {
  std::vector<std::optional<CpuTicks>> ticks(cpus.size());
  while (proc_stat.starts_with("cpu")) {
    const auto length = std::min(proc_stat.find('\n'), proc_stat.size());
    if (const auto line = parse_line(proc_stat.substr(0, length))) {
      const auto found = std::find(cpus.begin(), cpus.end(), line->cpu);
      if (found != cpus.end()) ticks[static_cast<std::size_t>(found - cpus.begin())] = line->ticks;
    }
    proc_stat.remove_prefix(std::min(length + 1, proc_stat.size()));
  }
  return ticks;
}

CpuLoad load_between(std::span<const std::optional<CpuTicks>> before,
                     std::span<const std::optional<CpuTicks>> after) {
  CpuLoad load;
  const auto count = std::min(before.size(), after.size());
  double all_busy = 0;
  double all = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!before[i] || !after[i]) continue;
    const auto busy = risen(before[i]->busy, after[i]->busy);
    const auto total = busy + risen(before[i]->idle, after[i]->idle);
    if (total <= 0) continue;
    load.cores.push_back(static_cast<float>(busy / total));
    all_busy += busy;
    all += total;
  }
  if (load.cores.size() != count) load.cores.clear();
  if (all > 0) load.mean = all_busy / all;
  return load;
}

}  // namespace muster

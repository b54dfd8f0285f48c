// One pass over /proc makes the list of processes. Shares are differences of counters of the kernel
// on both sides of the fraction: ticks of a process by ticks of a core, so no clock of this process
// comes in between. A process is known again by its start time beside its number, because numbers
// are used anew. Processes that end during the pass are left out.

#include "hw/cpu/process_reader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "spec/worker_arguments.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

template <typename Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc{} && end == text.data() + text.size();
}

// The ticks of all CPUs and their number, from the lines "cpu0 …". Guest time is in user time
// already. Source: proc(5), /proc/stat: user nice system idle iowait irq softirq steal.
struct MachineTicks {
  std::uint64_t ticks = 0;
  std::uint32_t cpus = 0;
};

MachineTicks machine_ticks(const std::string& proc_stat) {
  constexpr std::size_t kFields = 8;
  MachineTicks all;
  for (const auto& line : split(proc_stat, '\n')) {
    const bool is_cpu =
        line.size() > 3 && line.starts_with("cpu") && line[3] >= '0' && line[3] <= '9';
    if (!is_cpu) continue;
    const auto fields = split(line, ' ');
    for (std::size_t i = 1; i < fields.size() && i <= kFields; ++i) {
      std::uint64_t ticks = 0;
      if (read_number(std::string_view(fields[i]), ticks)) all.ticks += ticks;
    }
    ++all.cpus;
  }
  return all;
}

// The argument behind a flag, in a command line of arguments that end in zero bytes each.
std::string argument_after(const std::string& command_line, std::string_view flag) {
  const auto words = split(command_line, '\0');
  const auto found = std::find(words.begin(), words.end(), flag);
  return found == words.end() || found + 1 == words.end() ? "" : *(found + 1);
}

void name_worker(const fs::path& folder, HostProcess& process) {
  const auto command_line = read_file(folder / "cmdline");
  if (!command_line) return;
  process.device = argument_after(*command_line, kWorkerDeviceFlag);
  process.models = argument_after(*command_line, kWorkerModelsFlag);
  // Nothing is loaded yet.
  if (process.models.find_first_not_of(kWorkerModelsBlank) == std::string::npos) {
    process.models.clear();
  }
}

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  // A command may hold brackets and spaces itself: its end is the last bracket.
  const auto begin = text.find(" (");
  const auto end = text.rfind(") ");
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin + 2) {
    return std::nullopt;
  }
  ProcessStat stat;
  if (!read_number(text.substr(0, begin), stat.pid)) return std::nullopt;
  stat.command = text.substr(begin + 2, end - begin - 2);
  const auto fields = split(text.substr(end + 2), ' ');
  constexpr std::size_t kFirst = 3;  // the field behind the command
  const auto field = [&](std::size_t number, std::uint64_t& value) {
    return number - kFirst < fields.size() &&
           read_number(std::string_view(fields[number - kFirst]), value);
  };
  std::uint64_t parent = 0;
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  if (!field(4, parent) || !field(14, user) || !field(15, system) || !field(22, stat.start_ticks) ||
      !field(24, stat.memory_pages)) {
    return std::nullopt;
  }
  stat.parent_pid = static_cast<std::uint32_t>(parent);
  stat.cpu_ticks = user + system;
  return stat;
}

std::optional<ProcessStat> read_process_stat(std::uint32_t pid) {
  const auto text = read_file(fmt::format("/proc/{}/stat", pid));
  return text ? parse_process_stat(*text) : std::nullopt;
}

std::optional<double> ProcessReader::cores_of(const ProcessStat& stat,
                                              double ticks_of_a_core) const {
  const auto before = last_.find(stat.pid);
  const bool is_known = before != last_.end() && before->second.start_ticks == stat.start_ticks;
  if (!is_known || ticks_of_a_core <= 0 || stat.cpu_ticks < before->second.cpu_ticks) {
    return std::nullopt;
  }
  return static_cast<double>(stat.cpu_ticks - before->second.cpu_ticks) / ticks_of_a_core;
}

std::vector<HostProcess> ProcessReader::read(std::size_t count_most) {
  const auto proc = root_ / "proc";
  const auto proc_stat = read_file(proc / "stat");
  const auto machine = proc_stat ? machine_ticks(*proc_stat) : MachineTicks{};
  const bool has_interval =
      machine_ticks_ > 0 && machine.ticks > machine_ticks_ && machine.cpus > 0;
  const double ticks_of_a_core =
      has_interval ? static_cast<double>(machine.ticks - machine_ticks_) / machine.cpus : 0;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));

  std::vector<HostProcess> processes;
  std::map<std::uint32_t, Look> now;
  std::error_code ignored;
  for (fs::directory_iterator entry(proc, ignored), end; entry != end; entry.increment(ignored)) {
    std::uint32_t pid = 0;
    if (!read_number(std::string_view(entry->path().filename().native()), pid)) continue;
    const auto text = read_file(entry->path() / "stat");
    const auto stat = text ? parse_process_stat(*text) : std::nullopt;
    if (!stat) continue;
    now[stat->pid] = {stat->cpu_ticks, stat->start_ticks};
    HostProcess process{.pid = stat->pid,
                        .command = stat->command,
                        .cores = cores_of(*stat, ticks_of_a_core),
                        .memory_bytes = stat->memory_pages * page};
    if (process.command == kWorkerCommand) name_worker(entry->path(), process);
    // Threads of the kernel that sleep are nothing to look at.
    if (process.memory_bytes > 0 || process.cores.value_or(0) > 0) {
      processes.push_back(std::move(process));
    }
  }
  machine_ticks_ = machine.ticks;
  last_ = std::move(now);
  std::sort(processes.begin(), processes.end(), [](const HostProcess& a, const HostProcess& b) {
    return std::tuple(b.cores.value_or(0), b.memory_bytes, a.pid) <
           std::tuple(a.cores.value_or(0), a.memory_bytes, b.pid);
  });
  if (processes.size() > count_most) processes.resize(count_most);
  return processes;
}

}  // namespace muster

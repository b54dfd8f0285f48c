// Read from the kernel's own files; nothing is guessed where one is missing.
#include "bench/result/environment.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/build_info.h"
#include "base/file.h"
#include "base/text.h"
#include "hw/inventory.h"

namespace muster {
namespace {

constexpr double kKilo = 1e3;
constexpr std::uint64_t kKernelFileMost = 1 << 20;

// Without its line end; empty where there is none.
std::string file_line(const std::string& path) {
  const auto text = read_file(path, kKernelFileMost);
  return text ? std::string(trim(*text)) : std::string();
}

std::optional<double> kilohertz_in(const std::string& path) {
  const auto text = file_line(path);
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() && value > 0 ? std::optional(value * kKilo) : std::nullopt;
}

// The value of the first line of /proc/cpuinfo with this name.
std::string cpuinfo_value(std::string_view text, std::string_view name) {
  for (const auto& line : split(text, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string::npos || trim(line.substr(0, colon)) != name) continue;
    return std::string(trim(std::string_view(line).substr(colon + 1)));
  }
  return {};
}

std::optional<double> clock_now(std::string_view cpuinfo) {
  if (const auto hertz = kilohertz_in("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq")) {
    return hertz;
  }
  const auto text = cpuinfo_value(cpuinfo, "cpu MHz");
  double megahertz = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), megahertz);
  return parsed.ec == std::errc() && megahertz > 0 ? std::optional(megahertz * kKilo * kKilo)
                                                   : std::nullopt;
}

std::optional<MachineTicks> ticks_now() {
  const auto text = read_file("/proc/stat", 16 * kKernelFileMost);
  return text ? parse_machine_ticks(*text) : std::nullopt;
}

}  // namespace

BenchEnvironment find_environment() {
  BenchEnvironment environment;
  const auto cpuinfo = read_file("/proc/cpuinfo", 16 * kKernelFileMost);
  const std::string_view text = cpuinfo ? std::string_view(*cpuinfo) : std::string_view();
  // On a machine whose layout cannot be read the rest is still worth having.
  if (const auto inventory = find_inventory()) {
    environment.cpu_model = inventory->cpu_model;
    environment.logical_cpus = static_cast<std::uint32_t>(inventory->allowed_cpus.size());
    environment.core_count = inventory->core_count;
    environment.cpu_limit_cores = inventory->cpu_limit_cores;
    environment.instruction_sets = inventory->instruction_sets;
    environment.memory_bytes = inventory->memory_total_bytes;
  }
  // A hypervisor may call every generation "AMD EPYC": family and model tell them apart.
  if (const auto family = cpuinfo_value(text, "cpu family"); !family.empty()) {
    environment.cpu_model +=
        fmt::format(" (family {}, model {}, stepping {})", family, cpuinfo_value(text, "model"),
                    cpuinfo_value(text, "stepping"));
  }
  environment.clock_hertz = clock_now(text);
  environment.clock_max_hertz =
      kilohertz_in("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  environment.governor = file_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  environment.clock_source =
      file_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  utsname name{};
  if (::uname(&name) == 0) environment.kernel = name.release;
  environment.hypervisor = file_line("/sys/hypervisor/type");
  const auto flags = cpuinfo_value(text, "flags");
  if (environment.hypervisor.empty() && flags.find(" hypervisor") != std::string::npos) {
    environment.hypervisor = "unnamed";
  }
  environment.build = build_name();
  return environment;
}

std::optional<MachineTicks> parse_machine_ticks(std::string_view proc_stat) {
  const auto line = proc_stat.substr(0, proc_stat.find('\n'));
  std::uint64_t user = 0;
  std::uint64_t nice = 0;
  std::uint64_t system = 0;
  std::uint64_t idle = 0;
  std::uint64_t io_wait = 0;
  std::uint64_t irq = 0;
  std::uint64_t soft_irq = 0;
  std::uint64_t stolen = 0;
  const std::string text(line);
  constexpr int kFields = 8;
  if (std::sscanf(text.c_str(), "cpu %lu %lu %lu %lu %lu %lu %lu %lu", &user, &nice, &system, &idle,
                  &io_wait, &irq, &soft_irq, &stolen) != kFields) {
    return std::nullopt;
  }
  return MachineTicks{
      .busy = user + nice + system + irq + soft_irq, .idle = idle + io_wait, .stolen = stolen};
}

MachineWatch::MachineWatch() : begin_(ticks_now()) {}

MachineUse machine_use(const MachineTicks& begin, const MachineTicks& end, double own_ticks) {
  const auto counted = [](std::uint64_t from, std::uint64_t to) {
    return to > from ? static_cast<double>(to - from) : 0.0;
  };
  const double busy = counted(begin.busy, end.busy);
  const double stolen = counted(begin.stolen, end.stolen);
  const double all = std::max(busy + stolen + counted(begin.idle, end.idle), 1.0);
  return {.busy_share = busy / all,
          .stolen_share = stolen / all,
          .others_share = std::max(0.0, busy - own_ticks) / all};
}

MachineUse MachineWatch::use(double own_cpu_seconds) const {
  MachineUse use;
  const auto end = ticks_now();
  if (begin_ && end) {
    use = machine_use(*begin_, *end, own_cpu_seconds * static_cast<double>(::sysconf(_SC_CLK_TCK)));
  }
  if (const auto text = read_file("/proc/loadavg", kKernelFileMost)) {
    double one = 0;
    double five = 0;
    double fifteen = 0;
    if (std::sscanf(text->c_str(), "%lf %lf %lf", &one, &five, &fifteen) == 3) {
      use.load_average = {one, five, fifteen};
    }
  }
  return use;
}

}  // namespace muster

// CPU devices are NUMA nodes, while most of what the kernel counts is by machine, core or socket.
// So each figure has an owner: memory of the machine goes with cpu:0, energy of a socket with its
// first device, or sums over devices would count them twice. Frequency is read with the slow tier,
// as the kernel asks every core for it. Loads are differences, hence the first visit has none.

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "base/text.h"
#include "hw/cpu/cgroup.h"
#include "hw/cpu/cpu_load.h"
#include "hw/cpu/host_memory.h"
#include "hw/cpu/rapl.h"
#include "hw/device_sources.h"
#include "hw/kernel_file.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// A line of /proc/stat has at most 220 bytes, and the kernel at most 8192 CPUs (NR_CPUS of x86);
// the line of interrupts grows with them. /proc/cpuinfo takes about 2 kB a CPU.
constexpr std::size_t kStatMax = 4 << 20;
constexpr std::size_t kCpuinfoMax = 32 << 20;

constexpr auto kMedium = static_cast<std::size_t>(Tier::Medium);
constexpr auto kSlow = static_cast<std::size_t>(Tier::Slow);

fs::path cpu_folder(const fs::path& root, std::uint32_t cpu) {
  return root / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu));
}

// The kernel puts a link "node1" into the folder of a CPU of that node.
std::optional<std::uint32_t> node_of(const fs::path& root, std::uint32_t cpu) {
  constexpr std::string_view kPrefix = "node";
  std::error_code ignored;
  for (fs::directory_iterator entry(cpu_folder(root, cpu), ignored), end; entry != end;
       entry.increment(ignored)) {
    const auto name = entry->path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    const auto node = leading_number(std::string_view(name).substr(kPrefix.size()));
    if (node && *node >= 0) return static_cast<std::uint32_t>(*node);
  }
  return std::nullopt;
}

bool has_several_nodes(const fs::path& root) {
  std::error_code ignored;
  std::size_t count = 0;
  for (fs::directory_iterator entry(root / "sys/devices/system/node", ignored), end; entry != end;
       entry.increment(ignored)) {
    const auto name = entry->path().filename().string();
    if (name.starts_with("node") && leading_number(std::string_view(name).substr(4))) ++count;
  }
  return count > 1;
}

// Source: Linux, Documentation/admin-guide/cputopology.rst. Virtual machines may write -1.
std::optional<std::uint32_t> socket_of(const fs::path& root, std::uint32_t cpu) {
  const auto text = small_text(cpu_folder(root, cpu) / "topology/physical_package_id");
  const auto socket = text ? leading_number(*text) : std::nullopt;
  return socket && *socket >= 0 ? std::optional(static_cast<std::uint32_t>(*socket)) : std::nullopt;
}

// The mean of the lines "cpu MHz : 2699.998" of these CPUs.
std::optional<double> cpuinfo_hertz(std::string_view text, const std::vector<std::uint32_t>& cpus) {
  std::optional<std::int64_t> cpu;
  double sum = 0;
  std::size_t count = 0;
  while (!text.empty()) {
    const auto length = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    const bool is_number = line.starts_with("processor");
    const auto colon = line.find(':');
    if ((!is_number && !line.starts_with("cpu MHz")) || colon == std::string_view::npos) continue;
    const auto value = trim(line.substr(colon + 1));
    if (is_number) cpu = leading_number(value);
    if (is_number || !cpu) continue;
    if (std::find(cpus.begin(), cpus.end(), static_cast<std::uint32_t>(*cpu)) == cpus.end())
      continue;
    sum += std::strtod(std::string(value).c_str(), nullptr) * 1e6;
    ++count;
  }
  return count > 0 && sum > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

// The mean frequency of the cores of a device.
class CpuFrequency {
 public:
  CpuFrequency(const fs::path& root, const std::vector<std::uint32_t>& cpus)
      : cpus_(cpus), cpuinfo_("read /proc/cpuinfo", root / "proc/cpuinfo", kCpuinfoMax) {
    for (const auto cpu : cpus) {
      auto path = cpu_folder(root, cpu) / "cpufreq/scaling_cur_freq";
      std::error_code ignored;
      if (fs::exists(path, ignored)) files_.emplace_back("read scaling_cur_freq", std::move(path));
    }
  }

  void read(CallWatch& watch, DeviceSample& sample) {
    const auto hertz = files_.empty() ? by_cpuinfo(watch, sample) : by_cpufreq(watch, sample);
    if (hertz) sample.readings.set(Reading::CpuFrequency, *hertz);
  }

 private:
  // Kilohertz. Source: Linux, Documentation/admin-guide/pm/cpufreq.rst.
  std::optional<double> by_cpufreq(CallWatch& watch, DeviceSample& sample) {
    double sum = 0;
    for (auto& file : files_) {
      const auto code = file.read(watch, sample);
      const auto khz = code == 0 ? leading_number(file.text()) : std::nullopt;
      if (!khz) {
        sample.errors.push_back({Reading::CpuFrequency, code == 0 ? EBADMSG : code});
        return std::nullopt;
      }
      sum += static_cast<double>(*khz) * 1e3;
    }
    return sum / static_cast<double>(files_.size());
  }

  // Other architectures than x86 write no frequency there, which is no error.
  std::optional<double> by_cpuinfo(CallWatch& watch, DeviceSample& sample) {
    const auto code = cpuinfo_.read(watch, sample);
    if (code != 0) {
      sample.errors.push_back({Reading::CpuFrequency, code});
      return std::nullopt;
    }
    return cpuinfo_hertz(cpuinfo_.text(), cpus_);
  }

  std::vector<std::uint32_t> cpus_;
  std::vector<KernelFile> files_;
  KernelFile cpuinfo_;
};

struct CpuPlace {
  bool is_numa = false;  // the machine has several nodes
  std::optional<std::uint32_t> node;
  std::optional<std::uint32_t> socket;
  bool counts_socket = false;  // the first device of its socket: its energy is told once
};

class CpuSampler final : public DeviceSampler {
 public:
  CpuSampler(const Device& device, const CpuPlace& place, const std::vector<RaplZone>& zones,
             const fs::path& root)
      : root_(root),
        stat_("read /proc/stat", root / "proc/stat", kStatMax),
        meminfo_("read /proc/meminfo", root / "proc/meminfo", 64 << 10),
        frequency_(root, device.cpus) {
    identity_.device = device;
    identity_.numa_node = place.node;
    if (place.is_numa && place.node) {
      const auto folder = "sys/devices/system/node/node" + std::to_string(*place.node);
      node_meminfo_.emplace("read node meminfo", root / folder / "meminfo", 64 << 10);
    }
    if (place.counts_socket) {
      package_.emplace(zones, RaplDomain::Package, *place.socket);
      dram_.emplace(zones, RaplDomain::Dram, *place.socket);
    }
  }

  const DeviceIdentity& identity() const override { return identity_; }

  void sample(TierSet due, CallWatch& watch, DeviceSample& sample) override {
    if (is_first() && (due.test(kSlow) || !limits_)) {
      limits_.emplace(root_);  // it may have been moved elsewhere
      limits_->read_limits(watch, sample);
    }
    if (!due.test(kMedium)) return;
    read_load(watch, sample);
    // The kernel asks every core for it, which costs more than all the rest.
    if (due.test(kSlow)) frequency_.read(watch, sample);
    if (package_) package_->read(Reading::CpuEnergyPackage, watch, sample);
    if (dram_) dram_->read(Reading::CpuEnergyDram, watch, sample);
    read_memory(watch, sample);
  }

  std::optional<double> energy_joules(CallWatch& watch) override {
    if (!package_) return std::nullopt;
    DeviceSample alone;
    package_->read(Reading::CpuEnergyPackage, watch, alone);
    return alone.readings.get(Reading::CpuEnergyPackage);
  }

 private:
  bool is_first() const { return identity_.device.index == 0; }

  // Load is what happened between two visits: the first one has none, and that is no error.
  void read_load(CallWatch& watch, DeviceSample& sample) {
    const auto code = stat_.read(watch, sample);
    if (code != 0) {
      sample.errors.push_back({Reading::CpuUtilization, code});
      ticks_.clear();
      return;
    }
    auto now = parse_cpu_ticks(stat_.text(), identity_.device.cpus);
    auto load = load_between(ticks_, now);
    if (load.mean) sample.readings.set(Reading::CpuUtilization, *load.mean);
    sample.core_loads = std::move(load.cores);
    ticks_ = std::move(now);
  }

  // The memory of the only node is the machine's.
  void read_memory(CallWatch& watch, DeviceSample& sample) {
    if (node_meminfo_) tell_node(*node_meminfo_, node_meminfo_->read(watch, sample), sample);
    if (node_meminfo_ && !is_first()) return;
    const auto code = meminfo_.read(watch, sample);
    if (!node_meminfo_) tell_node(meminfo_, code, sample);
    if (is_first()) tell_machine(code, watch, sample);
  }

  static void tell_node(const KernelFile& file, std::int32_t code, DeviceSample& sample) {
    if (code != 0) {
      sample.errors.push_back({Reading::CpuMemorySize, code});
      sample.errors.push_back({Reading::CpuMemoryFree, code});
      sample.errors.push_back({Reading::CpuMemoryAvailable, code});
      return;
    }
    set(sample, Reading::CpuMemorySize, meminfo_bytes(file.text(), "MemTotal"));
    set(sample, Reading::CpuMemoryFree, meminfo_bytes(file.text(), "MemFree"));
    set(sample, Reading::CpuMemoryAvailable, available_bytes(file.text()));
  }

  void tell_machine(std::int32_t code, CallWatch& watch, DeviceSample& sample) {
    const auto size = meminfo_bytes(meminfo_.text(), "MemTotal");
    if (!size) {
      sample.errors.push_back({Reading::HostMemorySize, code == 0 ? EBADMSG : code});
      sample.errors.push_back({Reading::HostMemoryAvailable, code == 0 ? EBADMSG : code});
      return;
    }
    sample.readings.set(Reading::HostMemorySize, static_cast<double>(*size));
    const auto within = limits_->read(watch, sample);
    auto available = meminfo_bytes(meminfo_.text(), "MemAvailable");  // since Linux 3.14: proc(5)
    if (within.memory_available_bytes) {
      available = std::min(available.value_or(*size), *within.memory_available_bytes);
    }
    set(sample, Reading::HostMemoryAvailable, available);
    // A limit above what is there limits nothing.
    if (within.memory_bytes && *within.memory_bytes < *size) {
      set(sample, Reading::HostMemoryLimit, within.memory_bytes);
    }
  }

  static void set(DeviceSample& sample, Reading reading, std::optional<std::uint64_t> value) {
    if (value) sample.readings.set(reading, static_cast<double>(*value));
  }

  DeviceIdentity identity_;
  fs::path root_;
  KernelFile stat_;
  KernelFile meminfo_;
  std::optional<KernelFile> node_meminfo_;
  CpuFrequency frequency_;
  std::optional<RaplEnergy> package_;
  std::optional<RaplEnergy> dram_;
  std::optional<CgroupMemory> limits_;  // cpu:0 alone
  std::vector<std::optional<CpuTicks>> ticks_;
};

}  // namespace

DeviceSource open_cpu(const Inventory& inventory, const fs::path& root) {
  DeviceSource source;
  const auto zones = find_rapl_zones(root);
  const bool is_numa = has_several_nodes(root);
  std::vector<std::uint32_t> counted;
  for (const auto& device : inventory.cpus) {
    CpuPlace place;
    place.is_numa = is_numa;
    if (!device.cpus.empty()) {
      place.node = node_of(root, device.cpus.front());
      place.socket = socket_of(root, device.cpus.front());
    }
    if (place.socket && std::find(counted.begin(), counted.end(), *place.socket) == counted.end()) {
      counted.push_back(*place.socket);
      place.counts_socket = true;
    }
    source.samplers.push_back(std::make_unique<CpuSampler>(device, place, zones, root));
  }
  return source;
}

}  // namespace muster

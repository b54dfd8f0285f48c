// Samplers of AMD GPUs over small files. Most of what changes fast is in one binary table,
// gpu_metrics, read once a visit; single files fill only what the table leaves open, since each is
// one more read. Files are opened once, and those that a card does not have are not asked for
// again. A file that vanishes later means that the card is gone.

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "base/text.h"
#include "hw/amd/amd_card.h"
#include "hw/amd/amd_metrics.h"
#include "hw/amd/amd_processes.h"
#include "hw/amd/amd_throttle.h"
#include "hw/cpu/host_memory.h"
#include "hw/device_sources.h"
#include "hw/kernel_file.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using enum Reading;

// The words of ENODEV, errno 19, which the kernel answers once a card is unplugged.
constexpr const char* kGone = "the GPU is no longer there (ENODEV 19)";

// A file, the reading it is for, and the unit where it holds one whole number.
struct NumberFile {
  Reading reading;
  KernelFile file;
  double unit = 1.0;
};

// Reads small files into a sample: what is not offered is no error, what fails is one.
class Visit {
 public:
  Visit(CallWatch& watch, DeviceSample& sample) : watch_(watch), sample_(sample) {}

  bool read(KernelFile& file, Reading reading) {
    const auto code = file.read(watch_, sample_);
    if (code != 0 && !is_not_offered(code)) sample_.errors.push_back({reading, code});
    // Every file was there when the card was found.
    if (code == ENODEV || code == ENOENT) is_gone_ = true;
    return code == 0;
  }

  std::optional<double> number(std::optional<KernelFile>& file, Reading reading) {
    return file ? number(*file, reading) : std::nullopt;
  }

  std::optional<double> number(KernelFile& file, Reading reading) {
    if (!read(file, reading)) return std::nullopt;
    const auto value = leading_number(file.text());
    return value && *value >= 0 ? std::optional(static_cast<double>(*value)) : std::nullopt;
  }

  // A file of the system's, not of the card's.
  bool read_system(KernelFile& file) { return file.read(watch_, sample_) == 0; }

  void take(NumberFile& file) {
    const auto value = number(file.file, file.reading);
    if (value) sample_.readings.set(file.reading, *value * file.unit);
  }

  void set(Reading reading, std::optional<double> value) {
    if (value) sample_.readings.set(reading, *value);
  }

  bool has(Reading reading) const { return sample_.readings.has(reading); }
  std::optional<double> get(Reading reading) const { return sample_.readings.get(reading); }
  bool is_gone() const { return is_gone_; }

 private:
  CallWatch& watch_;
  DeviceSample& sample_;
  bool is_gone_ = false;
};

class AmdSampler final : public DeviceSampler {
 public:
  AmdSampler(const AmdCard& card, const fs::path& root, std::shared_ptr<AmdProcesses> processes)
      : card_(card),
        processes_(std::move(processes)),
        metrics_file_(file("read gpu_metrics", "gpu_metrics")),
        meminfo_("read /proc/meminfo", root / "proc/meminfo", 64 << 10),
        vram_total_("read mem_info", card.device / "mem_info_vram_total"),
        vram_used_(file("read mem_info", "mem_info_vram_used")),
        gtt_total_(file("read mem_info", "mem_info_gtt_total")),
        gtt_used_(file("read mem_info", "mem_info_gtt_used")),
        bad_pages_(file("read bad pages", "ras/gpu_vram_bad_pages", 1 << 20)) {
    add(fast_, GpuUtilization, file("read gpu_busy_percent", "gpu_busy_percent"), 0.01);
    add(fast_, GpuMemoryBusy, file("read mem_busy_percent", "mem_busy_percent"), 0.01);
    add_hwmon();
    add(slow_, GpuPcieLanes, file("read PCIe link", "current_link_width"), 1.0);
    add(slow_, GpuPcieLanesMax, file("read PCIe link", "max_link_width"), 1.0);
    add(slow_, GpuPcieReplays, file("read pcie_replay_count", "pcie_replay_count"), 1.0);
    add(speeds_, GpuPcieGeneration, file("read PCIe link", "current_link_speed"), 1.0);
    add(speeds_, GpuPcieGenerationMax, file("read PCIe link", "max_link_speed"), 1.0);
    add(clock_lists_, GpuClockMaxGraphics, file("read pp_dpm", "pp_dpm_sclk"), 1.0);
    add(clock_lists_, GpuClockMaxMemory, file("read pp_dpm", "pp_dpm_mclk"), 1.0);
    add_ras();
    for (const auto& partition : card.partitions) gpu_ids_.push_back(partition.gpu_id);
  }

  const DeviceIdentity& identity() const override { return card_.identity; }

  void sample(TierSet due, CallWatch& watch, DeviceSample& sample) override {
    Visit visit(watch, sample);
    const auto metrics = read_metrics(visit);
    if (is_due(due, Tier::Fast)) read_fast(metrics, visit);
    if (is_due(due, Tier::Medium)) read_medium(metrics, visit);
    if (is_due(due, Tier::Slow)) {
      read_slow(metrics, visit);
      sample.processes = processes_->list(card_.pci, gpu_ids_, card_.identity.has_unified_memory);
      sample.readings.set(GpuProcessCount, static_cast<double>(sample.processes->size()));
    }
    if (visit.is_gone()) sample.lost_reason = kGone;
  }

  std::optional<double> energy_joules(CallWatch& watch) override {
    DeviceSample alone;
    Visit visit(watch, alone);
    const auto metrics = read_metrics(visit);
    return metrics ? metrics->energy_joules : std::nullopt;
  }

 private:
  static std::optional<KernelFile> file_at(const char* call, const fs::path& path,
                                           std::size_t size_max = 4096) {
    std::error_code ignored;
    return fs::exists(path, ignored) ? std::optional(KernelFile(call, path, size_max))
                                     : std::nullopt;
  }

  std::optional<KernelFile> file(const char* call, const char* name,
                                 std::size_t size_max = 4096) const {
    return file_at(call, card_.device / name, size_max);
  }

  static void add(std::vector<NumberFile>& files, Reading reading, std::optional<KernelFile> file,
                  double unit) {
    if (file) files.push_back({reading, std::move(*file), unit});
  }

  // Power in millionths of a watt, clocks in hertz. Source: Documentation/gpu/amdgpu/thermal.rst.
  void add_hwmon() {
    if (!card_.hwmon) return;
    const auto at = [&](const char* name) { return file_at("read hwmon", *card_.hwmon / name); };
    // Of an APU this is the power of the whole socket.
    const bool is_apu = card_.identity.has_unified_memory;
    add(power_, is_apu ? GpuModulePowerAverage : GpuPowerAverage, at("power1_average"), 1e-6);
    add(power_, is_apu ? GpuModulePowerInstant : GpuPowerInstant, at("power1_input"), 1e-6);
    add(clocks_, GpuClockGraphics, at("freq1_input"), 1.0);
    add(clocks_, GpuClockMemory, at("freq2_input"), 1.0);
    add(slow_, GpuPowerLimitEnforced, at("power1_cap"), 1e-6);
    add(slow_, GpuPowerLimitDefault, at("power1_cap_default"), 1e-6);
    add(slow_, GpuPowerLimitMin, at("power1_cap_min"), 1e-6);
    add(slow_, GpuPowerLimitMax, at("power1_cap_max"), 1e-6);
    for (const auto& sensor : card_.thermometers) {
      add(temperatures_, sensor.reading, file_at("read hwmon", sensor.file), 1e-3);
    }
  }

  // Every block of the GPU that counts errors: ras/umc_err_count, ras/gfx_err_count, …
  void add_ras() {
    constexpr std::string_view kSuffix = "_err_count";
    std::error_code ignored;
    for (fs::directory_iterator entry(card_.device / "ras", ignored), end; entry != end;
         entry.increment(ignored)) {
      const auto name = entry->path().filename().string();
      if (name.ends_with(kSuffix)) ras_.emplace_back("read ras errors", entry->path());
    }
  }

  // One file tells most of what changes fast. Where its version is unknown, others do.
  std::optional<AmdMetrics> read_metrics(Visit& visit) {
    if (!metrics_file_ || !visit.read(*metrics_file_, GpuUtilization)) return std::nullopt;
    auto metrics = parse_gpu_metrics(std::as_bytes(std::span(metrics_file_->text())));
    return metrics ? std::optional(std::move(*metrics)) : std::nullopt;
  }

  void read_fast(const std::optional<AmdMetrics>& metrics, Visit& visit) {
    if (metrics) {
      visit.set(GpuUtilization, metrics->activity);
      visit.set(GpuMemoryBusy, metrics->memory_activity);
      visit.set(GpuPowerInstant, metrics->power_now);
      visit.set(GpuPowerAverage, metrics->power_average);
      visit.set(GpuEnergy, metrics->energy_joules);
      if (metrics->throttle) visit.set(GpuClockEvents, clock_events_of(*metrics->throttle));
      if (const auto events = throttle_.add(*metrics)) visit.set(GpuClockEvents, *events);
    }
    for (auto& one : fast_) {
      if (!visit.has(one.reading)) visit.take(one);
    }
    if (visit.has(GpuPowerInstant) || visit.has(GpuPowerAverage)) return;
    if (!card_.identity.has_unified_memory) take_all(power_, visit);
  }

  void read_medium(const std::optional<AmdMetrics>& metrics, Visit& visit) {
    read_memory(visit);
    take_all(temperatures_, visit);
    tell_headroom(visit);
    if (metrics) {
      visit.set(GpuClockGraphics, metrics->clock_graphics);
      visit.set(GpuClockMemory, metrics->clock_memory);
      visit.set(GpuClockVideo, metrics->clock_video);
      visit.set(GpuXgmiReceived, metrics->xgmi_read_bytes);
      visit.set(GpuXgmiSent, metrics->xgmi_written_bytes);
      visit.set(GpuModulePowerAverage, metrics->socket_power);
      if (const auto& held = throttle_.seconds()) {
        visit.set(GpuThrottleSwPowerCap, held->power);
        visit.set(GpuThrottleSwThermal, held->thermal);
        visit.set(GpuThrottleHwThermal, held->hot_signal);
      }
    }
    for (auto& one : clocks_) {
      if (!visit.has(one.reading)) visit.take(one);
    }
    if (card_.identity.has_unified_memory && !visit.has(GpuModulePowerAverage)) {
      take_all(power_, visit);
    }
  }

  // An APU computes in memory of the system (GTT) as in what is set aside for it (VRAM); what it
  // can still have of the former is what the system has left.
  void read_memory(Visit& visit) {
    const auto size = visit.number(vram_total_, GpuMemorySize);
    const auto used = visit.number(vram_used_, GpuMemoryUsed);
    if (!size || !used) return;
    auto all = *size;
    auto all_used = *used;
    auto free = std::max(0.0, *size - *used);
    if (card_.identity.has_unified_memory) {
      const auto gtt = visit.number(gtt_total_, GpuMemorySize);
      const auto gtt_used = visit.number(gtt_used_, GpuMemoryUsed);
      if (gtt && gtt_used) {
        all += *gtt;
        all_used += *gtt_used;
        free += std::min(std::max(0.0, *gtt - *gtt_used), system_available(visit).value_or(*gtt));
      }
    }
    visit.set(GpuMemorySize, all);
    visit.set(GpuMemoryUsed, all_used);
    visit.set(GpuMemoryFree, free);
  }

  std::optional<double> system_available(Visit& visit) {
    if (!visit.read_system(meminfo_)) return std::nullopt;
    const auto bytes = meminfo_bytes(meminfo_.text(), "MemAvailable");
    return bytes ? std::optional(static_cast<double>(*bytes)) : std::nullopt;
  }

  // Of all thermometers the one that is nearest to where the clock is lowered.
  void tell_headroom(Visit& visit) {
    std::optional<double> least;
    for (const auto& sensor : card_.thermometers) {
      const auto celsius = visit.get(sensor.reading);
      if (!celsius || !sensor.critical_celsius) continue;
      const auto left = *sensor.critical_celsius - *celsius;
      if (!least || left < *least) least = left;
    }
    visit.set(GpuTemperatureHeadroom, least);
  }

  void read_slow(const std::optional<AmdMetrics>& metrics, Visit& visit) {
    if (metrics) visit.set(GpuPcieReplays, metrics->pcie_replays);
    for (auto& one : slow_) {
      if (!visit.has(one.reading)) visit.take(one);
    }
    for (auto& speed : speeds_) {
      if (visit.read(speed.file, speed.reading)) {
        visit.set(speed.reading, pcie_generation_of(trim(speed.file.text())));
      }
    }
    for (auto& list : clock_lists_) {
      if (visit.read(list.file, list.reading)) {
        visit.set(list.reading, highest_clock(list.file.text()));
      }
    }
    for (const auto& sensor : card_.thermometers) {
      const bool is_core = sensor.reading == GpuTemperatureCore;
      const bool is_memory = sensor.reading == GpuTemperatureMemory;
      visit.set(is_core     ? GpuTemperatureLimitCore
                : is_memory ? GpuTemperatureLimitMemory
                            : GpuTemperatureLimitSlowdown,
                sensor.critical_celsius);
      if (!is_core && !is_memory) visit.set(GpuTemperatureLimitShutdown, sensor.emergency_celsius);
    }
    read_ras(visit);
  }

  // "ue: 0\nce: 3\n" for each block, since the driver was loaded; a retired page is a line
  // "0x… : 0x… : R". Source: drivers/gpu/drm/amd/amdgpu/amdgpu_ras.c.
  void read_ras(Visit& visit) {
    std::optional<double> uncorrected;
    std::optional<double> corrected;
    for (auto& block : ras_) {
      if (!visit.read(block, GpuEccUncorrectedVolatile)) continue;
      for (const auto& line : split(block.text(), '\n')) {
        const auto number =
            leading_number(std::string_view(line).substr(std::min<std::size_t>(3, line.size())));
        if (!number || *number < 0) continue;
        const auto count = static_cast<double>(*number);
        if (line.starts_with("ue:")) uncorrected = uncorrected.value_or(0) + count;
        if (line.starts_with("ce:")) corrected = corrected.value_or(0) + count;
      }
    }
    visit.set(GpuEccUncorrectedVolatile, uncorrected);
    visit.set(GpuEccCorrectedVolatile, corrected);
    if (!bad_pages_ || !visit.read(*bad_pages_, GpuRetiredPagesDoubleBit)) return;
    double retired = 0;
    for (const auto& line : split(bad_pages_->text(), '\n')) {
      if (trim(line).ends_with(": R")) ++retired;
    }
    visit.set(GpuRetiredPagesDoubleBit, retired);
  }

  static void take_all(std::vector<NumberFile>& files, Visit& visit) {
    for (auto& one : files) visit.take(one);
  }

  AmdCard card_;
  std::shared_ptr<AmdProcesses> processes_;
  std::optional<KernelFile> metrics_file_;
  KernelFile meminfo_;
  KernelFile vram_total_;
  std::optional<KernelFile> vram_used_;
  std::optional<KernelFile> gtt_total_;
  std::optional<KernelFile> gtt_used_;
  std::optional<KernelFile> bad_pages_;
  std::vector<NumberFile> fast_;
  std::vector<NumberFile> power_;
  std::vector<NumberFile> clocks_;
  std::vector<NumberFile> temperatures_;
  std::vector<NumberFile> slow_;
  std::vector<NumberFile> speeds_;
  std::vector<NumberFile> clock_lists_;
  std::vector<KernelFile> ras_;
  std::vector<std::uint64_t> gpu_ids_;
  AmdThrottle throttle_;
};

// A partition of a divided GPU: memory and activity of its own; all else is its GPU's.
class AmdPartitionSampler final : public DeviceSampler {
 public:
  AmdPartitionSampler(const AmdCard& card, const KfdGpu& partition,
                      std::shared_ptr<AmdProcesses> processes)
      : partition_(partition),
        processes_(std::move(processes)),
        metrics_file_("read gpu_metrics", card.device / "gpu_metrics"),
        used_("read used_memory", partition.used_memory_file) {
    identity_.device.kind = DeviceKind::Rocm;
    identity_.device.index = partition.partition;
    identity_.device.model = card.identity.device.model;
    identity_.device.memory_total_bytes = partition.memory_bytes;
    identity_.parent = card.identity.device.uuid.value_or(card.identity.device.name());
    identity_.device.uuid = *identity_.parent + "." + std::to_string(partition.partition);
    identity_.device.pci_address = card.identity.device.pci_address;
    identity_.mig_profile = small_text(card.device / "current_compute_partition");
    identity_.has_unified_memory = card.identity.has_unified_memory;
  }

  const DeviceIdentity& identity() const override { return identity_; }

  void sample(TierSet due, CallWatch& watch, DeviceSample& sample) override {
    Visit visit(watch, sample);
    if (is_due(due, Tier::Fast) && visit.read(metrics_file_, GpuUtilization)) {
      const auto metrics = parse_gpu_metrics(std::as_bytes(std::span(metrics_file_.text())));
      const auto index = partition_.partition;
      if (metrics && index < metrics->partition_activity.size()) {
        visit.set(GpuUtilization, metrics->partition_activity[index]);
      }
    }
    if (is_due(due, Tier::Medium) && partition_.memory_bytes > 0) {
      const auto size = static_cast<double>(partition_.memory_bytes);
      visit.set(GpuMemorySize, size);
      if (const auto used = visit.number(used_, GpuMemoryUsed)) {
        visit.set(GpuMemoryUsed, *used);
        visit.set(GpuMemoryFree, std::max(0.0, size - *used));
      }
    }
    if (is_due(due, Tier::Slow)) {
      sample.processes = processes_->list(std::string(), {partition_.gpu_id}, false);
      sample.readings.set(GpuProcessCount, static_cast<double>(sample.processes->size()));
    }
    if (visit.is_gone()) sample.lost_reason = kGone;
  }

  std::optional<double> energy_joules(CallWatch&) override { return std::nullopt; }

 private:
  DeviceIdentity identity_;
  KfdGpu partition_;
  std::shared_ptr<AmdProcesses> processes_;
  KernelFile metrics_file_;
  KernelFile used_;
};

}  // namespace

Result<DeviceSource> open_amd(const fs::path& root) {
  const auto topology = read_kfd_topology(root);
  const auto cards = find_amd_cards(root, topology);
  if (cards.empty()) {
    return Error{ErrorKind::Unavailable, "no AMD GPU (no card of vendor 0x1002 in /sys/class/drm)"};
  }
  DeviceSource source;
  const auto processes = std::make_shared<AmdProcesses>(root);
  std::vector<std::optional<std::uint32_t>> nodes;
  std::vector<std::optional<std::uint32_t>> numa_nodes;
  for (const auto& card : cards) {
    source.samplers.push_back(std::make_unique<AmdSampler>(card, root, processes));
    nodes.push_back(card.partitions.empty() ? std::nullopt
                                            : std::optional(card.partitions.front().node));
    numa_nodes.push_back(card.identity.numa_node);
    if (card.partitions.size() < 2) continue;
    for (const auto& partition : card.partitions) {
      source.samplers.push_back(std::make_unique<AmdPartitionSampler>(card, partition, processes));
    }
  }
  source.links = kfd_links(topology, nodes, numa_nodes);
  return source;
}

}  // namespace muster

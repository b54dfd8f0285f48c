// Simulated devices show what real ones of their type would, and leave out what those do not have:
// a slice has no power, an unknown board no energy, a GPU of AMD no NVLink. All readings of a
// moment follow from one load, so that they agree with each other, and counters are integrals of
// it. Idle and burning figures are measured on an H200; how parts follow the load is made up and
// marked so.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <vector>

#include "hw/device_sources.h"
#include "hw/simulated/load_curve.h"
#include "hw/simulated/simulated_boards.h"
#include "spec/gpu_catalogue.h"

namespace muster {
namespace {

using enum Reading;

// An H200 (driver 590.48.01) idle and under gpu_burn: 78 and 627 of 700 W, core 28 and 52 C, memory
// 32 and 40 C, 35 C to the limit at 52 C, 345 of 1980 MHz idle, and 643,825,664 of 150,754,820,096
// bytes reserved. Source: nvidia_gpu_exporter,
// internal/integration/testdata/linux-x86_64__nvidia-h200__590.48.01__*.metrics.
constexpr double kIdlePower = 78.0 / 700.0;
constexpr double kBurn = (627.0 / 700.0 - kIdlePower) / (1.0 - kIdlePower);  // as a load
constexpr double kCoreIdle = 28.0;
constexpr double kCoreRise = (52.0 - kCoreIdle) / kBurn;
constexpr double kMemoryIdle = 32.0;
constexpr double kMemoryRise = (40.0 - kMemoryIdle) / kBurn;
constexpr double kCoreLimit = 52.0 + 35.0;
constexpr double kIdleClock = 345.0 / 1980.0;
constexpr double kReserved = 643825664.0 / 150754820096.0;

// Made up, as the load itself: how the parts of a GPU follow it, as shares of what they could do.
constexpr double kClockLoss = 0.12;  // of the highest clock, at full load
constexpr double kMemoryBusy = 0.45;
constexpr double kPcieBusy = 0.10;
constexpr double kFabricBusy = 0.30;

struct ActivityShare {
  Reading reading;
  double share;
};
constexpr std::array kActivities{
    ActivityShare{GpuSmActive, 0.94},        ActivityShare{GpuSmOccupancy, 0.38},
    ActivityShare{GpuTensorActiveAny, 0.52}, ActivityShare{GpuTensorActiveHmma, 0.50},
    ActivityShare{GpuTensorActiveImma, 0.0}, ActivityShare{GpuTensorActiveDfma, 0.0},
    ActivityShare{GpuDramActive, 0.42},      ActivityShare{GpuPipeFp64Active, 0.0},
    ActivityShare{GpuPipeFp32Active, 0.16},  ActivityShare{GpuPipeFp16Active, 0.06},
    ActivityShare{GpuPipeIntActive, 0.11}};

// Nothing ever breaks by itself.
constexpr std::array kCudaZeros{GpuNvlinkCrcFlitErrors,
                                GpuNvlinkCrcDataErrors,
                                GpuNvlinkReplayErrors,
                                GpuNvlinkRecoveryErrors,
                                GpuRemappedRowsCorrectable,
                                GpuRemappedRowsUncorrectable,
                                GpuRemapPending,
                                GpuRemapFailed,
                                GpuEccCorrectedAggregate,
                                GpuEccUncorrectedAggregate};
constexpr std::array kZeros{GpuPcieReplays, GpuEccCorrectedVolatile, GpuEccUncorrectedVolatile};

// Linux gives no process a number this high, so none of here is meant. Source: proc(5), pid_max.
constexpr std::uint32_t kPidBase = 1 << 22;

// What does not change of a simulated GPU.
struct SimulatedGpu {
  DeviceIdentity identity;
  std::uint64_t memory_bytes = 0;
  const GpuFacts* facts = nullptr;        // nullptr: not in the catalogue
  const SimulatedBoard* board = nullptr;  // nullptr: its power is not known
  double fabric_bytes_per_second = 0;     // 0: it has no NVLink or Infinity Fabric
};

class SimulatedGpuSampler final : public DeviceSampler {
 public:
  SimulatedGpuSampler(SimulatedGpu gpu, LoadCurve load, const Clock& clock, std::uint32_t pid)
      : gpu_(std::move(gpu)), load_(std::move(load)), clock_(clock), pid_(pid) {}

  const DeviceIdentity& identity() const override { return gpu_.identity; }

  void sample(TierSet due, CallWatch&, DeviceSample& sample) override {
    const auto t = seconds(clock_.now().time_since_epoch());
    auto& readings = sample.readings;
    if (is_due(due, Tier::Fast)) read_fast(t, readings);
    if (is_due(due, Tier::Medium)) read_medium(t, readings);
    if (!is_due(due, Tier::Slow)) return;
    if (!is_slice()) read_slow(t, readings);
    sample.processes = processes(t);
    readings.set(GpuProcessCount, static_cast<double>(sample.processes->size()));
  }

  std::optional<double> energy_joules(CallWatch&) override {
    if (is_slice() || gpu_.board == nullptr) return std::nullopt;
    return energy(seconds(clock_.now().time_since_epoch()));
  }

 private:
  // A slice has memory and multiprocessors; power, clocks and links are its GPU's.
  bool is_slice() const { return gpu_.identity.parent.has_value(); }
  bool is_cuda() const { return gpu_.identity.device.kind == DeviceKind::Cuda; }

  double power(double load) const {
    return gpu_.board->power_limit_watts * (kIdlePower + (1.0 - kIdlePower) * load);
  }

  double energy(double t) const {
    const auto limit = gpu_.board->power_limit_watts;
    return limit * (kIdlePower * t + (1.0 - kIdlePower) * load_.load_seconds(t));
  }

  void read_fast(double t, Readings& readings) const {
    if (is_slice()) return;
    const auto load = load_.load(t);
    readings.set(GpuUtilization, load);
    readings.set(GpuMemoryBusy, kMemoryBusy * load);
    if (gpu_.board == nullptr) return;
    readings.set(GpuPowerInstant, power(load));
    readings.set(GpuPowerAverage, power(load_.load_seconds(t) - load_.load_seconds(t - 1.0)));
    readings.set(GpuEnergy, energy(t));
  }

  void read_clock_events(double load, Readings& readings) const {
    if (gpu_.board == nullptr) return;
    const bool is_capped = load >= LoadCurve::kCapped;
    const auto event = is_capped ? ClockEvent::SwPowerCap : ClockEvent::GpuIdle;
    readings.set(GpuClockEvents, load > 0.0 && !is_capped ? 0.0 : static_cast<double>(event));
  }

  void read_medium(double t, Readings& readings) const {
    const auto load = load_.load(t);
    read_memory(t, readings);
    if (gpu_.board != nullptr && gpu_.board->has_activity_counters) {
      for (const auto& activity : kActivities)
        readings.set(activity.reading, activity.share * load);
    }
    if (is_slice()) return;
    const auto slow = load_.slow_load(t);
    const auto core = kCoreIdle + kCoreRise * slow;
    readings.set(GpuTemperatureCore, core);
    readings.set(GpuTemperatureMemory, kMemoryIdle + kMemoryRise * slow);
    readings.set(GpuTemperatureHeadroom, kCoreLimit - core);
    read_clock_events(load, readings);
    read_clocks(load, readings);
    read_traffic(t, readings);
    if (!is_cuda()) return;
    readings.set(GpuRecoveryAction, 0.0);
    readings.set(GpuThrottleSwPowerCap, load_.capped_seconds(t));
    for (const auto reading : {GpuThrottleSyncBoost, GpuThrottleSwThermal, GpuThrottleHwThermal,
                               GpuThrottleHwPowerBrake}) {
      readings.set(reading, 0.0);
    }
  }

  double memory_used(double t) const {
    const auto size = static_cast<double>(gpu_.memory_bytes);
    return std::floor(load_.memory_share(t) * (size - std::floor(kReserved * size)));
  }

  void read_memory(double t, Readings& readings) const {
    const auto size = static_cast<double>(gpu_.memory_bytes);
    const auto reserved = std::floor(kReserved * size);
    const auto used = memory_used(t);
    readings.set(GpuMemorySize, size);
    readings.set(GpuMemoryReserved, reserved);
    readings.set(GpuMemoryUsed, used);
    readings.set(GpuMemoryFree, size - reserved - used);
  }

  void read_clocks(double load, Readings& readings) const {
    if (gpu_.board == nullptr || !gpu_.board->graphics_hertz_max) return;
    const auto share = load > 0.0 ? 1.0 - kClockLoss * load : kIdleClock;
    const auto hertz = *gpu_.board->graphics_hertz_max * share;
    readings.set(GpuClockGraphics, hertz);
    if (is_cuda()) readings.set(GpuClockSm, hertz);
    if (const auto memory = gpu_.board->memory_hertz_max) readings.set(GpuClockMemory, *memory);
  }

  void read_traffic(double t, Readings& readings) const {
    const auto busy = load_.load_seconds(t);
    if (gpu_.facts != nullptr) {
      const auto bytes = pcie_bytes_per_second(gpu_.facts->pcie_generation) * kPcieBusy * busy;
      readings.set(GpuPcieReceived, std::floor(bytes));
      readings.set(GpuPcieSent, std::floor(bytes / 2.0));
    }
    if (gpu_.fabric_bytes_per_second <= 0.0) return;
    const auto bytes = std::floor(gpu_.fabric_bytes_per_second * kFabricBusy * busy);
    readings.set(is_cuda() ? GpuNvlinkSent : GpuXgmiSent, bytes);
    readings.set(is_cuda() ? GpuNvlinkReceived : GpuXgmiReceived, bytes);
  }

  void read_slow(double t, Readings& readings) const {
    for (const auto reading : kZeros) readings.set(reading, 0.0);
    readings.set(GpuTemperatureLimitCore, kCoreLimit);
    if (gpu_.board != nullptr) {
      const auto limit = gpu_.board->power_limit_watts;
      readings.set(GpuPowerLimitEnforced, limit);
      readings.set(GpuPowerLimitDefault, limit);
      readings.set(GpuPowerLimitMax, limit);
      set(readings, GpuClockMaxGraphics, gpu_.board->graphics_hertz_max);
      if (is_cuda()) set(readings, GpuClockMaxSm, gpu_.board->graphics_hertz_max);
      set(readings, GpuClockMaxMemory, gpu_.board->memory_hertz_max);
    }
    if (gpu_.facts != nullptr && gpu_.facts->pcie_generation > 0) {
      const auto generation = static_cast<double>(gpu_.facts->pcie_generation);
      readings.set(GpuPcieGeneration,
                   load_.load(t) > 0.0 ? generation : 1.0);  // idle links go down
      readings.set(GpuPcieGenerationMax, generation);
      readings.set(GpuPcieLanes, 16.0);
      readings.set(GpuPcieLanesMax, 16.0);
    }
    if (!is_cuda()) return;
    for (const auto reading : kCudaZeros) readings.set(reading, 0.0);
    if (gpu_.fabric_bytes_per_second > 0.0) {
      readings.set(GpuNvlinkLinksActive, static_cast<double>(gpu_.facts->link_count));
    }
  }

  static void set(Readings& readings, Reading reading, std::optional<double> value) {
    if (value) readings.set(reading, *value);
  }

  std::vector<GpuProcess> processes(double t) const {
    const auto used = static_cast<std::uint64_t>(memory_used(t));
    if (used == 0) return {};
    return {{.pid = pid_, .command = "simulated", .memory_bytes = used}};
  }

  SimulatedGpu gpu_;
  LoadCurve load_;
  const Clock& clock_;
  std::uint32_t pid_;
};

class SimulatedCpuSampler final : public DeviceSampler {
 public:
  SimulatedCpuSampler(DeviceIdentity identity, double host_bytes, LoadCurve load,
                      const Clock& clock)
      : identity_(std::move(identity)),
        host_bytes_(host_bytes),
        load_(std::move(load)),
        clock_(clock) {}

  const DeviceIdentity& identity() const override { return identity_; }

  void sample(TierSet due, CallWatch&, DeviceSample& sample) override {
    if (!is_due(due, Tier::Medium)) return;
    const auto t = seconds(clock_.now().time_since_epoch());
    double sum = 0;
    for (std::size_t core = 0; core < identity_.device.cpus.size(); ++core) {
      // Each core lags the one before by three seconds, so that a wave runs over them.
      const auto load = load_.load(t - 3.0 * static_cast<double>(core));
      sample.core_loads.push_back(static_cast<float>(load));
      sum += load;
    }
    sample.readings.set(CpuUtilization, sum / static_cast<double>(sample.core_loads.size()));
    const auto size = static_cast<double>(identity_.device.memory_total_bytes.value_or(0));
    const auto free_share = 1.0 - load_.memory_share(t);
    if (size > 0) {
      sample.readings.set(CpuMemorySize, size);
      sample.readings.set(CpuMemoryFree, std::floor(size * free_share));
      sample.readings.set(CpuMemoryAvailable, std::floor(size * free_share));
    }
    if (host_bytes_ <= 0) return;
    sample.readings.set(HostMemorySize, host_bytes_);
    sample.readings.set(HostMemoryAvailable, std::floor(host_bytes_ * free_share));
  }

  std::optional<double> energy_joules(CallWatch&) override { return std::nullopt; }

 private:
  DeviceIdentity identity_;
  double host_bytes_;  // 0: another device carries what is the machine's
  LoadCurve load_;
  const Clock& clock_;
};

// "SIM-3f2a…", in the form of NVIDIA's.
std::string made_up_uuid(std::uint64_t seed, std::uint64_t name, std::uint64_t number) {
  const auto high = mixed_hash(seed, name, 2 * number);
  const auto low = mixed_hash(seed, name, 2 * number + 1);
  return fmt::format("SIM-{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff,
                     high & 0xffff, low >> 48, low & 0xffffffffffffULL);
}

std::uint64_t text_hash(std::string_view text) {
  std::uint64_t hash = 0;
  for (const char c : text) hash = mixed_hash(hash, static_cast<unsigned char>(c), 0);
  return hash;
}

bool has_fabric(const LinkMatrix& links, std::size_t row) {
  const auto n = links.device_count;
  if (row >= n) return false;
  const auto begin = links.labels.begin() + static_cast<std::ptrdiff_t>(row * n);
  return std::any_of(begin, begin + n, [](const LinkLabel& label) {
    return label.kind == LinkKind::NvLink || label.kind == LinkKind::Xgmi;
  });
}

// The links among the GPUs that are no slices, from those among all devices of the machine.
LinkMatrix links_of_gpus(const Machine& machine, const LinkMatrix& links) {
  if (links.device_count != machine.devices.size()) return links;
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < machine.devices.size(); ++i) {
    const auto& device = machine.devices[i];
    if (device.kind != DeviceKind::Cpu && !device.parent) kept.push_back(i);
  }
  LinkMatrix matrix{static_cast<std::uint32_t>(kept.size()), {}};
  for (const auto a : kept) {
    for (const auto b : kept) matrix.labels.push_back(links.labels[a * links.device_count + b]);
  }
  return matrix;
}

// Makes the samplers of one machine.
class Simulation {
 public:
  Simulation(const Machine& machine, const LinkMatrix& links, const Clock& clock,
             std::uint64_t seed)
      : machine_(machine),
        links_(links_of_gpus(machine, links)),
        clock_(clock),
        seed_(seed),
        name_hash_(text_hash(machine.name)) {}

  DeviceSource open() {
    for (std::uint32_t i = 0; i < machine_.devices.size(); ++i) {
      const auto& device = machine_.devices[i];
      if (device.kind != DeviceKind::Cpu && !device.parent) add_gpu(i);
      if (device.kind != DeviceKind::Cpu && !device.parent && device.uuid) add_slices(*device.uuid);
    }
    for (const auto& device : machine_.devices) {
      if (device.parent) add_slices(*device.parent);  // of a GPU that the machine does not list
    }
    for (std::uint32_t i = 0; i < machine_.devices.size(); ++i) {
      if (machine_.devices[i].kind == DeviceKind::Cpu) add_cpu(i);
    }
    source_.links = std::move(links_);
    return std::move(source_);
  }

 private:
  const DeviceClass& class_of(const MachineDevice& device) const {
    return machine_.classes[device.device_class];
  }

  SimulatedGpu gpu_of(std::uint32_t i) const {
    const auto& device = machine_.devices[i];
    const auto& known = class_of(device);
    SimulatedGpu gpu;
    const auto found = find_gpu(known.model);
    gpu.facts = found ? *found : nullptr;
    gpu.board = gpu.facts != nullptr ? find_simulated_board(gpu.facts->name) : nullptr;
    gpu.memory_bytes = known.memory_bytes;
    auto& shown = gpu.identity.device;
    shown.kind = device.kind;
    shown.index = device.index;
    shown.model = gpu.facts != nullptr ? std::string(gpu.facts->driver_name) : known.model;
    shown.uuid = device.uuid ? *device.uuid : made_up_uuid(seed_, name_hash_, i);
    shown.memory_total_bytes = known.memory_bytes;
    shown.memory_free_bytes = device.free_bytes;
    gpu.identity.has_unified_memory = device.kind == DeviceKind::Mps;
    shown.has_unified_memory = gpu.identity.has_unified_memory;
    return gpu;
  }

  void add(SimulatedGpu gpu, std::uint32_t i) {
    source_.samplers.push_back(std::make_unique<SimulatedGpuSampler>(
        std::move(gpu), LoadCurve(seed_, i), clock_, kPidBase + 1 + i));
  }

  void add_gpu(std::uint32_t i) {
    auto gpu = gpu_of(i);
    const auto& device = machine_.devices[i];
    const auto slot = i - machine_.nodes[device.node].first_device;
    gpu.identity.device.pci_address =
        fmt::format("{:08X}:{:02X}:{:02X}.0", device.node, (slot + 1) % 256, (slot + 1) / 256);
    gpu.identity.driver_index = device.index;
    if (device.kind == DeviceKind::Cuda) gpu.identity.cuda_ordinal = device.index;
    if (has_fabric(links_, gpu_count_++) && gpu.facts != nullptr) {
      gpu.fabric_bytes_per_second = gpu.facts->link_count * gpu.facts->link_bytes_per_second;
    }
    add(std::move(gpu), i);
  }

  void add_slices(const std::string& parent) {
    if (!sliced_.insert(parent).second) return;
    std::uint32_t number = 0;
    for (std::uint32_t i = 0; i < machine_.devices.size(); ++i) {
      if (machine_.devices[i].parent != parent) continue;
      auto gpu = gpu_of(i);
      gpu.identity.parent = parent;
      gpu.identity.device.index = number++;
      add(std::move(gpu), i);
    }
  }

  void add_cpu(std::uint32_t i) {
    const auto& device = machine_.devices[i];
    const auto& known = class_of(device);
    DeviceIdentity identity;
    identity.device.kind = DeviceKind::Cpu;
    identity.device.index = device.index;
    identity.device.model = known.model;
    if (known.memory_bytes > 0) identity.device.memory_total_bytes = known.memory_bytes;
    for (std::uint32_t core = 0; core < device.core_count; ++core) {
      identity.device.cpus.push_back(core);
    }
    source_.samplers.push_back(std::make_unique<SimulatedCpuSampler>(
        std::move(identity), device.index == 0 ? host_bytes() : 0.0, LoadCurve(seed_, i), clock_));
  }

  double host_bytes() const {
    double bytes = 0;
    for (const auto& device : machine_.devices) {
      if (device.kind == DeviceKind::Cpu)
        bytes += static_cast<double>(class_of(device).memory_bytes);
    }
    return bytes;
  }

  const Machine& machine_;
  LinkMatrix links_;
  const Clock& clock_;
  std::uint64_t seed_;
  std::uint64_t name_hash_;
  std::size_t gpu_count_ = 0;
  std::set<std::string> sliced_;  // GPUs whose slices are there
  DeviceSource source_;
};

}  // namespace

DeviceSource open_simulated(const Machine& machine, const LinkMatrix& links, const Clock& clock,
                            std::uint64_t seed) {
  return Simulation(machine, links, clock, seed).open();
}

}  // namespace muster

// A GPU's readings in three tiers by cost and by how fast they change. Each reading is asked for
// the newest way first, and for an older way only once the newer one is known to be absent: what a
// driver lacks is learned from its first answer, and later visits make no call in vain. Fields go
// in one batch a tier since each call into the driver has its price. Source: nvml.h 13.3.

#include "hw/nvml/nvml_sampler.h"

#include "hw/nvml/nvml_field_lists.h"
#include "hw/nvml/nvml_fields.h"
#include "hw/nvml/nvml_links.h"
#include "hw/nvml/nvml_memory.h"
#include "hw/nvml/nvml_pcie.h"
#include "hw/nvml/nvml_processes.h"

namespace muster {
namespace {

using enum Reading;
using enum NvmlOffer;

constexpr double kMilli = 1e-3;
constexpr double kMega = 1e6;

// What asking for energy may take in the fast tier. Ten times a second 100 us are 0.1 % of a core,
// the most that watching a GPU may cost. An H100 under driver 580 needs 3.9 ms.
constexpr Duration kFastEnergyMax = std::chrono::microseconds(100);
// One look may be interrupted, and the first one also loads what the driver needs for it.
constexpr int kEnergyLooks = 3;

// A value of nvmlClockType_t, and what it gives now and at most.
struct ClockDomain {
  unsigned type;
  Reading now;
  Reading max;
};
constexpr std::array kClockDomains{ClockDomain{0, GpuClockGraphics, GpuClockMaxGraphics},
                                   ClockDomain{1, GpuClockSm, GpuClockMaxSm},
                                   ClockDomain{2, GpuClockMemory, GpuClockMaxMemory},
                                   ClockDomain{3, GpuClockVideo, GpuClockMaxVideo}};

// A value of nvmlTemperatureThresholds_t. The fields 193 to 196 are none of these: they are degrees
// of headroom, not temperatures.
struct Threshold {
  unsigned type;
  Reading reading;
};
constexpr std::array kThresholds{
    Threshold{0, GpuTemperatureLimitShutdown}, Threshold{1, GpuTemperatureLimitSlowdown},
    Threshold{2, GpuTemperatureLimitMemory}, Threshold{3, GpuTemperatureLimitCore}};

// nvmlMemoryErrorType_t and nvmlEccCounterType_t.
struct EccCount {
  std::size_t row;
  unsigned type;
  unsigned counter;
  Reading reading;
};
constexpr std::array kEccCounts{EccCount{SlowEcc + 0, 0, 0, GpuEccCorrectedVolatile},
                                EccCount{SlowEcc + 1, 1, 0, GpuEccUncorrectedVolatile},
                                EccCount{SlowEcc + 2, 0, 1, GpuEccCorrectedAggregate},
                                EccCount{SlowEcc + 3, 1, 1, GpuEccUncorrectedAggregate}};

// What nvmlDeviceGetPowerUsage gives: nvml.h 13.3, "On Ampere (except GA100) or newer GPUs, the API
// returns power averaged over 1 sec interval. On GA100 and older architectures, instantaneous power
// is returned." GA100 is compute capability 8.0.
std::optional<Reading> power_usage_reading(const DeviceIdentity& identity) {
  const auto capability = identity.device.compute_capability;
  if (!capability) return std::nullopt;
  return *capability <= 80 ? GpuPowerInstant : GpuPowerAverage;
}

class GpuSampler final : public DeviceSampler {
 public:
  GpuSampler(std::shared_ptr<const NvmlLibrary> library, const NvmlGpu& gpu, NvmlGpuParts parts,
             const std::filesystem::path& root)
      : library_(std::move(library)),
        gpu_(gpu),
        link_count_(parts.link_count),
        processes_(root),
        gpm_(std::move(parts.gpm)),
        energy_tier_(parts.energy_tier),
        fast_(fast_fields(energy_tier_, gpm_ == nullptr)),
        medium_(medium_fields(energy_tier_, link_count_)),
        slow_(slow_fields(link_count_)),
        pcie_sent_(parts.pcie_bytes_max),
        pcie_received_(parts.pcie_bytes_max) {}

  const DeviceIdentity& identity() const override { return gpu_.identity; }
  void sample(TierSet due, CallWatch& watch, DeviceSample& sample) override;
  std::optional<double> energy_joules(CallWatch& watch) override;

 private:
  struct Offers {
    NvmlOffer utilization = Unknown, clock_events = Unknown, power = Unknown, energy = Unknown;
    NvmlOffer temperature_v = Unknown, temperature = Unknown, hotspot = Unknown, margin = Unknown;
    std::array<NvmlOffer, kClockDomains.size()> clocks{}, max_clocks{};
    std::array<NvmlOffer, kThresholds.size()> thresholds{};
    std::array<NvmlOffer, 4> pcie{};
    NvmlOffer power_limit = Unknown, power_limit_default = Unknown, power_limits = Unknown;
    NvmlOffer pcie_replays = Unknown, remapped_rows = Unknown, links = Unknown;
    std::array<NvmlOffer, kEccCounts.size()> ecc{};
    std::array<NvmlOffer, 3> retired_pages{};
  };

  void read_fast(NvmlVisit& visit);
  void read_energy_call(NvmlVisit& visit);
  void read_medium(NvmlVisit& visit);
  void read_temperatures(NvmlVisit& visit);
  template <typename Function>
  void read_clocks(NvmlVisit& visit, std::array<NvmlOffer, kClockDomains.size()>& offers,
                   Function function, Reading ClockDomain::*reading);
  void read_pcie_bytes(NvmlVisit& visit);
  void read_slow(NvmlVisit& visit);
  void read_limits(NvmlVisit& visit);
  void read_pcie_link(NvmlVisit& visit);
  void read_errors(NvmlVisit& visit);
  void read_retired_pages(NvmlVisit& visit, std::size_t row, unsigned cause, Reading reading);
  void read_links_active(NvmlVisit& visit);

  std::shared_ptr<const NvmlLibrary> library_;
  NvmlGpu gpu_;
  unsigned link_count_;
  NvmlProcesses processes_;
  std::unique_ptr<NvmlGpm> gpm_;
  Tier energy_tier_;
  NvmlFields fast_;
  NvmlFields medium_;
  NvmlFields slow_;
  NvmlMemoryReader memory_;
  PcieByteCounter pcie_sent_;
  PcieByteCounter pcie_received_;
  Offers offers_;
};

void GpuSampler::sample(TierSet due, CallWatch& watch, DeviceSample& sample) {
  NvmlVisit visit(*library_, watch, sample);
  if (gpu_.handle == nullptr) {
    if (gpu_.open_code == kNvmlTimeout) {
      visit.lose("it did not answer when it was opened");
    } else {
      visit.lose(gpu_.open_code);
    }
    return;
  }
  const auto is_due = [&](Tier tier) { return due.test(static_cast<std::size_t>(tier)); };
  if (is_due(Tier::Fast)) read_fast(visit);
  if (is_due(Tier::Medium)) read_medium(visit);
  if (is_due(Tier::Slow)) read_slow(visit);
}

std::optional<double> GpuSampler::energy_joules(CallWatch& watch) {
  DeviceSample sample;
  NvmlVisit visit(*library_, watch, sample);
  unsigned long long millijoules = 0;
  if (gpu_.handle == nullptr) return std::nullopt;
  if (visit.ask(offers_.energy, {GpuEnergy}, visit.functions().energy, gpu_.handle, &millijoules)) {
    return static_cast<double>(millijoules) * kMilli;
  }
  if (offers_.energy != Absent) return std::nullopt;
  NvmlFieldValue value{};
  value.field = kFieldEnergy;
  value.code = kNvmlUnknown;
  const auto code = visit.call(visit.functions().field_values, gpu_.handle, 1, &value);
  if (code != kNvmlSuccess || value.code != kNvmlSuccess) return std::nullopt;
  const auto number = nvml_number(value);
  return number ? std::optional(*number * kMilli) : std::nullopt;
}

void GpuSampler::read_fast(NvmlVisit& visit) {
  const auto& nvml = visit.functions();
  fast_.read(visit, gpu_.handle);
  const auto power_reading = power_usage_reading(gpu_.identity);
  unsigned milliwatts = 0;
  if (fast_.is_absent(FastPowerInstant) && fast_.is_absent(FastPowerAverage) && power_reading &&
      visit.ask(offers_.power, {*power_reading}, nvml.power, gpu_.handle, &milliwatts)) {
    visit.set(*power_reading, milliwatts * kMilli);
  }
  if (energy_tier_ == Tier::Fast && fast_.is_absent(FastEnergy)) read_energy_call(visit);
  // nvml.h 13.3: not supported on GPUs in MIG mode.
  NvmlUtilization utilization{};
  if (!gpu_.identity.is_mig_on.value_or(false) &&
      visit.ask(offers_.utilization, {GpuUtilization, GpuMemoryBusy}, nvml.utilization, gpu_.handle,
                &utilization)) {
    visit.set_percent(GpuUtilization, utilization.gpu);
    visit.set_percent(GpuMemoryBusy, utilization.memory);
  }
  if (gpm_ == nullptr && !visit.is_lost()) {
    pcie_sent_.add(fast_.value(FastPcieSent), visit.at());
    pcie_received_.add(fast_.value(FastPcieReceived), visit.at());
  }
}

// For drivers that do not offer the field.
void GpuSampler::read_energy_call(NvmlVisit& visit) {
  unsigned long long millijoules = 0;
  if (visit.ask(offers_.energy, {GpuEnergy}, visit.functions().energy, gpu_.handle, &millijoules)) {
    visit.set(GpuEnergy, static_cast<double>(millijoules) * kMilli);
  }
}

void GpuSampler::read_medium(NvmlVisit& visit) {
  const auto& nvml = visit.functions();
  medium_.read(visit, gpu_.handle);
  if (energy_tier_ == Tier::Medium && medium_.is_absent(MediumEnergy)) read_energy_call(visit);
  memory_.read(visit, gpu_.handle);
  unsigned long long events = 0;
  if (visit.ask(offers_.clock_events, {GpuClockEvents}, nvml.clock_events, gpu_.handle, &events)) {
    visit.set(GpuClockEvents, static_cast<double>(events));
  }
  read_temperatures(visit);
  read_clocks(visit, offers_.clocks, nvml.clock, &ClockDomain::now);
  read_pcie_bytes(visit);
}

template <typename Function>
void GpuSampler::read_clocks(NvmlVisit& visit, std::array<NvmlOffer, kClockDomains.size()>& offers,
                             Function function, Reading ClockDomain::*reading) {
  for (std::size_t i = 0; i < kClockDomains.size(); ++i) {
    const auto& domain = kClockDomains[i];
    unsigned megahertz = 0;
    if (visit.ask(offers[i], {domain.*reading}, function, gpu_.handle, domain.type, &megahertz)) {
      visit.set(domain.*reading, megahertz * kMega);
    }
  }
}

void GpuSampler::read_temperatures(NvmlVisit& visit) {
  const auto& nvml = visit.functions();
  // nvmlTemperatureSensors_t: 0 the die; 1 its hottest part, which only newer drivers know.
  NvmlTemperature core{nvml_version(sizeof(NvmlTemperature), 1), 0, 0};
  unsigned degrees = 0;
  if (visit.ask(offers_.temperature_v, {GpuTemperatureCore}, nvml.temperature_v, gpu_.handle,
                &core)) {
    visit.set(GpuTemperatureCore, core.celsius);
  } else if (offers_.temperature_v == Absent &&
             visit.ask(offers_.temperature, {GpuTemperatureCore}, nvml.temperature, gpu_.handle, 0U,
                       &degrees)) {
    visit.set(GpuTemperatureCore, degrees);
  }
  NvmlTemperature hotspot{nvml_version(sizeof(NvmlTemperature), 1), 1, 0};
  if (visit.ask_one_of_many(offers_.hotspot, {GpuTemperatureHotspot}, nvml.temperature_v,
                            gpu_.handle, &hotspot)) {
    visit.set(GpuTemperatureHotspot, hotspot.celsius);
  }
  NvmlMarginTemperature margin{nvml_version(sizeof(NvmlMarginTemperature), 1), 0};
  if (visit.ask(offers_.margin, {GpuTemperatureHeadroom}, nvml.margin, gpu_.handle, &margin)) {
    visit.set(GpuTemperatureHeadroom, margin.celsius);
  }
}

// By GPM where there is one, whose rates are exact at any load. Else by the driver's counters, read
// with the fast tier for the sake of their wraps. Never by nvmlDeviceGetPcieThroughput: each call
// blocks for 20 ms.
void GpuSampler::read_pcie_bytes(NvmlVisit& visit) {
  if (gpm_ != nullptr) {
    if (medium_.is_absent(MediumNvlinkSent) && link_count_ > 0) gpm_->count_nvlink();
    gpm_->read(visit);
    return;
  }
  if (const auto bytes = pcie_sent_.bytes()) visit.set(GpuPcieSent, *bytes);
  if (const auto bytes = pcie_received_.bytes()) visit.set(GpuPcieReceived, *bytes);
}

void GpuSampler::read_slow(NvmlVisit& visit) {
  const auto& nvml = visit.functions();
  slow_.read(visit, gpu_.handle);
  read_limits(visit);
  read_clocks(visit, offers_.max_clocks, nvml.max_clock, &ClockDomain::max);
  read_pcie_link(visit);
  read_errors(visit);
  read_links_active(visit);
  processes_.read(visit, gpu_.handle);
}

void GpuSampler::read_limits(NvmlVisit& visit) {
  const auto& nvml = visit.functions();
  unsigned milliwatts = 0;
  unsigned milliwatts_max = 0;
  if (slow_.is_absent(SlowPowerLimit) && visit.ask(offers_.power_limit, {GpuPowerLimitEnforced},
                                                   nvml.power_limit, gpu_.handle, &milliwatts)) {
    visit.set(GpuPowerLimitEnforced, milliwatts * kMilli);
  }
  if (slow_.is_absent(SlowPowerLimitDefault) &&
      visit.ask(offers_.power_limit_default, {GpuPowerLimitDefault}, nvml.power_limit_default,
                gpu_.handle, &milliwatts)) {
    visit.set(GpuPowerLimitDefault, milliwatts * kMilli);
  }
  if (slow_.is_absent(SlowPowerLimitMin) &&
      visit.ask(offers_.power_limits, {GpuPowerLimitMin, GpuPowerLimitMax}, nvml.power_limits,
                gpu_.handle, &milliwatts, &milliwatts_max)) {
    visit.set(GpuPowerLimitMin, milliwatts * kMilli);
    visit.set(GpuPowerLimitMax, milliwatts_max * kMilli);
  }
  for (std::size_t i = 0; i < kThresholds.size(); ++i) {
    unsigned degrees = 0;
    if (visit.ask(offers_.thresholds[i], {kThresholds[i].reading}, nvml.temperature_threshold,
                  gpu_.handle, kThresholds[i].type, &degrees)) {
      visit.set(kThresholds[i].reading, degrees);
    }
  }
}

void GpuSampler::read_pcie_link(NvmlVisit& visit) {
  const auto& nvml = visit.functions();
  const auto ask = [&](std::size_t offer, Reading reading, const NvmlFunctions::Number& function) {
    unsigned value = 0;
    if (visit.ask(offers_.pcie[offer], {reading}, function, gpu_.handle, &value)) {
      visit.set(reading, value);
    }
  };
  ask(0, GpuPcieGeneration, nvml.pcie_generation);
  ask(1, GpuPcieLanes, nvml.pcie_lanes);
  ask(2, GpuPcieGenerationMax, nvml.pcie_generation_max);
  ask(3, GpuPcieLanesMax, nvml.pcie_lanes_max);
  unsigned replays = 0;
  if (slow_.is_absent(SlowPcieReplays) &&
      visit.ask(offers_.pcie_replays, {GpuPcieReplays}, nvml.pcie_replays, gpu_.handle, &replays)) {
    visit.set(GpuPcieReplays, replays);
  }
}

void GpuSampler::read_errors(NvmlVisit& visit) {
  const auto& nvml = visit.functions();
  for (std::size_t i = 0; i < kEccCounts.size(); ++i) {
    const auto& ecc = kEccCounts[i];
    unsigned long long count = 0;
    if (slow_.is_absent(ecc.row) && visit.ask(offers_.ecc[i], {ecc.reading}, nvml.ecc_errors,
                                              gpu_.handle, ecc.type, ecc.counter, &count)) {
      visit.set(ecc.reading, static_cast<double>(count));
    }
  }
  unsigned correctable = 0;
  unsigned uncorrectable = 0;
  unsigned is_pending = 0;
  unsigned has_failed = 0;
  if (slow_.is_absent(SlowRemaps) &&
      visit.ask(offers_.remapped_rows,
                {GpuRemappedRowsCorrectable, GpuRemappedRowsUncorrectable, GpuRemapPending,
                 GpuRemapFailed},
                nvml.remapped_rows, gpu_.handle, &correctable, &uncorrectable, &is_pending,
                &has_failed)) {
    visit.set(GpuRemappedRowsCorrectable, correctable);
    visit.set(GpuRemappedRowsUncorrectable, uncorrectable);
    visit.set(GpuRemapPending, is_pending != 0 ? 1 : 0);
    visit.set(GpuRemapFailed, has_failed != 0 ? 1 : 0);
  }
  // nvmlPageRetirementCause_t: 0 many single-bit errors, 1 a double-bit error.
  read_retired_pages(visit, SlowRetired, 0, GpuRetiredPagesSingleBit);
  read_retired_pages(visit, SlowRetired + 1, 1, GpuRetiredPagesDoubleBit);
}

// The count alone: without room for addresses the call says how many there are.
void GpuSampler::read_retired_pages(NvmlVisit& visit, std::size_t row, unsigned cause,
                                    Reading reading) {
  auto& offer = offers_.retired_pages[cause];
  if (!slow_.is_absent(row) || offer == Absent) return;
  unsigned count = 0;
  auto code = visit.call(visit.functions().retired_pages, gpu_.handle, cause, &count,
                         static_cast<unsigned long long*>(nullptr));
  if (code == kNvmlInsufficientSize) code = kNvmlSuccess;
  offer = offer_after(offer, code, false);
  if (visit.accept(code, {reading})) visit.set(reading, count);
}

void GpuSampler::read_links_active(NvmlVisit& visit) {
  if (link_count_ == 0 || !slow_.is_absent(SlowLinksActive)) return;
  unsigned active_count = 0;
  for (unsigned link = 0; link < link_count_; ++link) {
    unsigned is_active = 0;
    if (!visit.ask(offers_.links, {GpuNvlinkLinksActive}, visit.functions().link_state, gpu_.handle,
                   link, &is_active)) {
      return;
    }
    active_count += is_active != 0 ? 1 : 0;
  }
  visit.set(GpuNvlinkLinksActive, active_count);
}

// How long asking for energy takes: by the field, or by its own call where the field is not
// offered.
Duration energy_time(const NvmlFunctions& nvml, NvmlDevice device, NvmlCaller& call) {
  NvmlFieldValue value{};
  value.field = kFieldEnergy;
  value.code = kNvmlUnknown;
  auto before = call.took();
  const auto code = call(nvml.field_values, device, 1, &value);
  if (code != kNvmlSuccess || value.code != kNvmlSuccess) {
    unsigned long long millijoules = 0;
    before = call.took();
    call(nvml.energy, device, &millijoules);
  }
  return call.took() - before;
}

// By the quickest of a few looks, and never by the GPU's name: driver and machine matter as well.
Tier find_energy_tier(const NvmlFunctions& nvml, NvmlDevice device, NvmlCaller& call) {
  for (int look = 0; look < kEnergyLooks; ++look) {
    if (energy_time(nvml, device, call) <= kFastEnergyMax) return Tier::Fast;
  }
  return Tier::Medium;
}

// Of the link that GPU and slot can do.
std::optional<double> pcie_rate_max(const NvmlFunctions& nvml, NvmlDevice device,
                                    NvmlCaller& call) {
  unsigned generation = 0;
  unsigned lanes = 0;
  if (call(nvml.pcie_generation_max, device, &generation) != kNvmlSuccess ||
      call(nvml.pcie_lanes_max, device, &lanes) != kNvmlSuccess) {
    return std::nullopt;
  }
  return pcie_bytes_per_second(generation, lanes);
}

}  // namespace

NvmlGpuParts read_gpu_parts(const std::shared_ptr<const NvmlLibrary>& library, const NvmlGpu& gpu,
                            NvmlCaller& call) {
  NvmlGpuParts parts;
  parts.link_count = nvlink_count(library->functions(), gpu.handle, call);
  parts.energy_tier = find_energy_tier(library->functions(), gpu.handle, call);
  parts.gpm = NvmlGpm::open(library, gpu.handle, std::nullopt, call);
  if (parts.gpm == nullptr) {
    parts.pcie_bytes_max = pcie_rate_max(library->functions(), gpu.handle, call);
  }
  return parts;
}

std::unique_ptr<DeviceSampler> make_nvml_gpu_sampler(std::shared_ptr<const NvmlLibrary> library,
                                                     const NvmlGpu& gpu, NvmlGpuParts parts,
                                                     const std::filesystem::path& root) {
  return std::make_unique<GpuSampler>(std::move(library), gpu, std::move(parts), root);
}

}  // namespace muster

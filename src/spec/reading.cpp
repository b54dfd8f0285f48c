// The table of all readings. Everything that shows a reading (devices, top, metrics, recordings)
// takes name, unit and tier from here.

#include "spec/reading.h"

#include <algorithm>

#include "base/check.h"

namespace muster {
namespace {

using enum Reading;
constexpr auto kGauge = ReadingType::Gauge;
constexpr auto kCounter = ReadingType::Counter;
constexpr auto kGpu = ReadingScope::Gpu;
constexpr auto kCpu = ReadingScope::Cpu;
constexpr auto kHost = ReadingScope::Host;
constexpr auto kFast = Tier::Fast;
constexpr auto kMedium = Tier::Medium;
constexpr auto kSlow = Tier::Slow;

// clang-format off
constexpr std::array<ReadingInfo, kReadingCount> kTable{{
  {GpuUtilization, "utilization_ratio", "gpu_utilization_ratio", "", "", kGauge, kGpu, kFast},
  {GpuMemoryBusy, "memory_busy_ratio", "gpu_memory_busy_ratio", "", "", kGauge, kGpu, kFast},
  {GpuPowerInstant, "power_instant_watts", "gpu_power_watts", R"(window="instant",scope="gpu")", "W", kGauge, kGpu, kFast},
  {GpuPowerAverage, "power_1s_watts", "gpu_power_watts", R"(window="1s",scope="gpu")", "W", kGauge, kGpu, kFast},
  {GpuEnergy, "energy_joules", "gpu_energy_joules_total", "", "J", kCounter, kGpu, kFast},
  {GpuClockEvents, "clock_events", "gpu_clock_event_active", "", "", kGauge, kGpu, kMedium},
  {GpuModulePowerInstant, "module_power_instant_watts", "gpu_power_watts", R"(window="instant",scope="module")", "W", kGauge, kGpu, kMedium},
  {GpuModulePowerAverage, "module_power_1s_watts", "gpu_power_watts", R"(window="1s",scope="module")", "W", kGauge, kGpu, kMedium},
  {GpuMemoryPowerInstant, "memory_power_instant_watts", "gpu_power_watts", R"(window="instant",scope="memory")", "W", kGauge, kGpu, kMedium},
  {GpuMemoryUsed, "memory_used_bytes", "gpu_memory_bytes", R"(state="used")", "B", kGauge, kGpu, kMedium},
  {GpuMemoryFree, "memory_free_bytes", "gpu_memory_bytes", R"(state="free")", "B", kGauge, kGpu, kMedium},
  {GpuMemoryReserved, "memory_reserved_bytes", "gpu_memory_bytes", R"(state="reserved")", "B", kGauge, kGpu, kMedium},
  {GpuMemorySize, "memory_size_bytes", "gpu_memory_size_bytes", "", "B", kGauge, kGpu, kMedium},
  {GpuTemperatureCore, "temperature_core_celsius", "gpu_temperature_celsius", R"(sensor="core")", "C", kGauge, kGpu, kMedium},
  {GpuTemperatureHotspot, "temperature_hotspot_celsius", "gpu_temperature_celsius", R"(sensor="hotspot")", "C", kGauge, kGpu, kMedium},
  {GpuTemperatureMemory, "temperature_memory_celsius", "gpu_temperature_celsius", R"(sensor="memory")", "C", kGauge, kGpu, kMedium},
  {GpuTemperatureHeadroom, "temperature_headroom_celsius", "gpu_temperature_headroom_celsius", "", "C", kGauge, kGpu, kMedium},
  {GpuClockGraphics, "clock_graphics_hertz", "gpu_clock_hertz", R"(domain="graphics")", "Hz", kGauge, kGpu, kMedium},
  {GpuClockSm, "clock_sm_hertz", "gpu_clock_hertz", R"(domain="sm")", "Hz", kGauge, kGpu, kMedium},
  {GpuClockMemory, "clock_memory_hertz", "gpu_clock_hertz", R"(domain="memory")", "Hz", kGauge, kGpu, kMedium},
  {GpuClockVideo, "clock_video_hertz", "gpu_clock_hertz", R"(domain="video")", "Hz", kGauge, kGpu, kMedium},
  {GpuSmActive, "sm_active_ratio", "gpu_sm_active_ratio", "", "", kGauge, kGpu, kMedium},
  {GpuSmOccupancy, "sm_occupancy_ratio", "gpu_sm_occupancy_ratio", "", "", kGauge, kGpu, kMedium},
  {GpuTensorActiveAny, "tensor_active_ratio", "gpu_tensor_active_ratio", R"(pipe="any")", "", kGauge, kGpu, kMedium},
  {GpuTensorActiveHmma, "tensor_hmma_active_ratio", "gpu_tensor_active_ratio", R"(pipe="hmma")", "", kGauge, kGpu, kMedium},
  {GpuTensorActiveImma, "tensor_imma_active_ratio", "gpu_tensor_active_ratio", R"(pipe="imma")", "", kGauge, kGpu, kMedium},
  {GpuTensorActiveDfma, "tensor_dfma_active_ratio", "gpu_tensor_active_ratio", R"(pipe="dfma")", "", kGauge, kGpu, kMedium},
  {GpuDramActive, "dram_active_ratio", "gpu_dram_active_ratio", "", "", kGauge, kGpu, kMedium},
  {GpuPipeFp64Active, "fp64_active_ratio", "gpu_pipe_active_ratio", R"(pipe="fp64")", "", kGauge, kGpu, kMedium},
  {GpuPipeFp32Active, "fp32_active_ratio", "gpu_pipe_active_ratio", R"(pipe="fp32")", "", kGauge, kGpu, kMedium},
  {GpuPipeFp16Active, "fp16_active_ratio", "gpu_pipe_active_ratio", R"(pipe="fp16")", "", kGauge, kGpu, kMedium},
  {GpuPipeIntActive, "int_active_ratio", "gpu_pipe_active_ratio", R"(pipe="int")", "", kGauge, kGpu, kMedium},
  {GpuThrottleSwPowerCap, "sw_power_cap_seconds", "gpu_clock_event_seconds_total", R"(reason="sw_power_cap")", "s", kCounter, kGpu, kMedium},
  {GpuThrottleSyncBoost, "sync_boost_seconds", "gpu_clock_event_seconds_total", R"(reason="sync_boost")", "s", kCounter, kGpu, kMedium},
  {GpuThrottleSwThermal, "sw_thermal_seconds", "gpu_clock_event_seconds_total", R"(reason="sw_thermal")", "s", kCounter, kGpu, kMedium},
  {GpuThrottleHwThermal, "hw_thermal_seconds", "gpu_clock_event_seconds_total", R"(reason="hw_thermal")", "s", kCounter, kGpu, kMedium},
  {GpuThrottleHwPowerBrake, "hw_power_brake_seconds", "gpu_clock_event_seconds_total", R"(reason="hw_power_brake")", "s", kCounter, kGpu, kMedium},
  {GpuPcieSent, "pcie_sent_bytes", "gpu_pcie_bytes_total", R"(direction="sent")", "B", kCounter, kGpu, kMedium},
  {GpuPcieReceived, "pcie_received_bytes", "gpu_pcie_bytes_total", R"(direction="received")", "B", kCounter, kGpu, kMedium},
  {GpuNvlinkSent, "nvlink_sent_bytes", "gpu_nvlink_bytes_total", R"(direction="sent")", "B", kCounter, kGpu, kMedium},
  {GpuNvlinkReceived, "nvlink_received_bytes", "gpu_nvlink_bytes_total", R"(direction="received")", "B", kCounter, kGpu, kMedium},
  {GpuXgmiSent, "xgmi_sent_bytes", "gpu_xgmi_bytes_total", R"(direction="sent")", "B", kCounter, kGpu, kMedium},
  {GpuXgmiReceived, "xgmi_received_bytes", "gpu_xgmi_bytes_total", R"(direction="received")", "B", kCounter, kGpu, kMedium},
  {GpuRecoveryAction, "recovery_action", "gpu_recovery_action", "", "", kGauge, kGpu, kMedium},
  {GpuPowerLimitEnforced, "power_limit_watts", "gpu_power_limit_watts", R"(kind="enforced")", "W", kGauge, kGpu, kSlow},
  {GpuPowerLimitDefault, "power_limit_default_watts", "gpu_power_limit_watts", R"(kind="default")", "W", kGauge, kGpu, kSlow},
  {GpuPowerLimitMin, "power_limit_min_watts", "gpu_power_limit_watts", R"(kind="min")", "W", kGauge, kGpu, kSlow},
  {GpuPowerLimitMax, "power_limit_max_watts", "gpu_power_limit_watts", R"(kind="max")", "W", kGauge, kGpu, kSlow},
  {GpuTemperatureLimitShutdown, "temperature_limit_shutdown_celsius", "gpu_temperature_limit_celsius", R"(limit="shutdown")", "C", kGauge, kGpu, kSlow},
  {GpuTemperatureLimitSlowdown, "temperature_limit_slowdown_celsius", "gpu_temperature_limit_celsius", R"(limit="slowdown")", "C", kGauge, kGpu, kSlow},
  {GpuTemperatureLimitCore, "temperature_limit_core_celsius", "gpu_temperature_limit_celsius", R"(limit="core")", "C", kGauge, kGpu, kSlow},
  {GpuTemperatureLimitMemory, "temperature_limit_memory_celsius", "gpu_temperature_limit_celsius", R"(limit="memory")", "C", kGauge, kGpu, kSlow},
  {GpuClockMaxGraphics, "clock_max_graphics_hertz", "gpu_clock_max_hertz", R"(domain="graphics")", "Hz", kGauge, kGpu, kSlow},
  {GpuClockMaxSm, "clock_max_sm_hertz", "gpu_clock_max_hertz", R"(domain="sm")", "Hz", kGauge, kGpu, kSlow},
  {GpuClockMaxMemory, "clock_max_memory_hertz", "gpu_clock_max_hertz", R"(domain="memory")", "Hz", kGauge, kGpu, kSlow},
  {GpuClockMaxVideo, "clock_max_video_hertz", "gpu_clock_max_hertz", R"(domain="video")", "Hz", kGauge, kGpu, kSlow},
  {GpuPcieGeneration, "pcie_generation", "gpu_pcie_link_generation", "", "", kGauge, kGpu, kSlow},
  {GpuPcieLanes, "pcie_lanes", "gpu_pcie_link_lanes", "", "", kGauge, kGpu, kSlow},
  {GpuPcieGenerationMax, "pcie_generation_max", "gpu_pcie_link_generation_max", "", "", kGauge, kGpu, kSlow},
  {GpuPcieLanesMax, "pcie_lanes_max", "gpu_pcie_link_lanes_max", "", "", kGauge, kGpu, kSlow},
  {GpuPcieReplays, "pcie_replays", "gpu_pcie_replays_total", "", "", kCounter, kGpu, kSlow},
  {GpuNvlinkLinksActive, "nvlink_links_active", "gpu_nvlink_links_active", "", "", kGauge, kGpu, kSlow},
  {GpuNvlinkCrcFlitErrors, "nvlink_crc_flit_errors", "gpu_nvlink_errors_total", R"(kind="crc_flit")", "", kCounter, kGpu, kSlow},
  {GpuNvlinkCrcDataErrors, "nvlink_crc_data_errors", "gpu_nvlink_errors_total", R"(kind="crc_data")", "", kCounter, kGpu, kSlow},
  {GpuNvlinkReplayErrors, "nvlink_replay_errors", "gpu_nvlink_errors_total", R"(kind="replay")", "", kCounter, kGpu, kSlow},
  {GpuNvlinkRecoveryErrors, "nvlink_recovery_errors", "gpu_nvlink_errors_total", R"(kind="recovery")", "", kCounter, kGpu, kSlow},
  {GpuEccCorrectedVolatile, "ecc_corrected_volatile_errors", "gpu_ecc_errors_total", R"(severity="corrected",scope="volatile")", "", kCounter, kGpu, kSlow},
  {GpuEccUncorrectedVolatile, "ecc_uncorrected_volatile_errors", "gpu_ecc_errors_total", R"(severity="uncorrected",scope="volatile")", "", kCounter, kGpu, kSlow},
  {GpuEccCorrectedAggregate, "ecc_corrected_aggregate_errors", "gpu_ecc_errors_total", R"(severity="corrected",scope="aggregate")", "", kCounter, kGpu, kSlow},
  {GpuEccUncorrectedAggregate, "ecc_uncorrected_aggregate_errors", "gpu_ecc_errors_total", R"(severity="uncorrected",scope="aggregate")", "", kCounter, kGpu, kSlow},
  {GpuRemappedRowsCorrectable, "remapped_rows_correctable", "gpu_remapped_rows", R"(cause="correctable")", "", kGauge, kGpu, kSlow},
  {GpuRemappedRowsUncorrectable, "remapped_rows_uncorrectable", "gpu_remapped_rows", R"(cause="uncorrectable")", "", kGauge, kGpu, kSlow},
  {GpuRemapPending, "remap_pending", "gpu_remap_pending", "", "", kGauge, kGpu, kSlow},
  {GpuRemapFailed, "remap_failed", "gpu_remap_failed", "", "", kGauge, kGpu, kSlow},
  {GpuRetiredPagesSingleBit, "retired_pages_single_bit", "gpu_retired_pages", R"(cause="single_bit")", "", kGauge, kGpu, kSlow},
  {GpuRetiredPagesDoubleBit, "retired_pages_double_bit", "gpu_retired_pages", R"(cause="double_bit")", "", kGauge, kGpu, kSlow},
  {GpuProcessCount, "processes", "gpu_processes", "", "", kGauge, kGpu, kSlow},
  {CpuUtilization, "cpu_utilization_ratio", "cpu_utilization_ratio", "", "", kGauge, kCpu, kMedium},
  {CpuFrequency, "cpu_frequency_hertz", "cpu_frequency_hertz", "", "Hz", kGauge, kCpu, kSlow},
  {CpuEnergyPackage, "cpu_energy_package_joules", "cpu_energy_joules_total", R"(domain="package")", "J", kCounter, kCpu, kMedium},
  {CpuEnergyDram, "cpu_energy_dram_joules", "cpu_energy_joules_total", R"(domain="dram")", "J", kCounter, kCpu, kMedium},
  {CpuMemorySize, "cpu_memory_size_bytes", "cpu_memory_bytes", R"(state="size")", "B", kGauge, kCpu, kMedium},
  {CpuMemoryFree, "cpu_memory_free_bytes", "cpu_memory_bytes", R"(state="free")", "B", kGauge, kCpu, kMedium},
  {CpuMemoryAvailable, "cpu_memory_available_bytes", "cpu_memory_bytes", R"(state="available")", "B", kGauge, kCpu, kMedium},
  {HostMemorySize, "host_memory_size_bytes", "host_memory_bytes", R"(state="size")", "B", kGauge, kHost, kMedium},
  {HostMemoryAvailable, "host_memory_available_bytes", "host_memory_bytes", R"(state="available")", "B", kGauge, kHost, kMedium},
  {HostMemoryLimit, "host_memory_limit_bytes", "host_memory_bytes", R"(state="limit")", "B", kGauge, kHost, kMedium},
}};
// clang-format on

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<std::size_t>(kTable[i].reading) != i) return false;
  }
  return true;
}
static_assert(is_in_order());

struct FamilyHelp {
  std::string_view family;
  std::string_view help;
};

constexpr std::array kHelp{
    FamilyHelp{"gpu_utilization_ratio", "Share of the driver's last period with a kernel running"},
    FamilyHelp{"gpu_memory_busy_ratio", "Share of the driver's last period with memory in use"},
    FamilyHelp{"gpu_power_watts", "Power drawn"},
    FamilyHelp{"gpu_energy_joules_total", "Energy since the driver was loaded"},
    FamilyHelp{"gpu_clock_event_active", "1 while this reason holds the clock below its maximum"},
    FamilyHelp{"gpu_memory_bytes", "Device memory by state"},
    FamilyHelp{"gpu_memory_size_bytes", "Device memory in all"},
    FamilyHelp{"gpu_temperature_celsius", "Temperature"},
    FamilyHelp{"gpu_temperature_headroom_celsius", "Degrees left until the clock is lowered"},
    FamilyHelp{"gpu_clock_hertz", "Clock now"},
    FamilyHelp{"gpu_sm_active_ratio", "Share of multiprocessor cycles with a warp resident"},
    FamilyHelp{"gpu_sm_occupancy_ratio", "Resident warps relative to the most possible"},
    FamilyHelp{"gpu_tensor_active_ratio", "Share of cycles with the tensor pipe active"},
    FamilyHelp{"gpu_dram_active_ratio", "Share of the memory bandwidth in use"},
    FamilyHelp{"gpu_pipe_active_ratio", "Share of cycles with this pipe active"},
    FamilyHelp{"gpu_clock_event_seconds_total", "Time that this reason held the clock down"},
    FamilyHelp{"gpu_pcie_bytes_total", "Bytes over PCIe, seen from the GPU"},
    FamilyHelp{"gpu_nvlink_bytes_total", "Bytes over all NVLinks, seen from the GPU"},
    FamilyHelp{"gpu_xgmi_bytes_total", "Bytes over all Infinity Fabric links, seen from the GPU"},
    FamilyHelp{
        "gpu_recovery_action",
        "What the driver asks for: 0 none, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset"},
    FamilyHelp{"gpu_power_limit_watts", "Power limit"},
    FamilyHelp{"gpu_temperature_limit_celsius", "Temperature at which the device protects itself"},
    FamilyHelp{"gpu_clock_max_hertz", "Highest clock"},
    FamilyHelp{"gpu_pcie_link_generation", "PCIe generation of the link now; idle links go down"},
    FamilyHelp{"gpu_pcie_link_lanes", "PCIe lanes of the link now"},
    FamilyHelp{"gpu_pcie_link_generation_max", "PCIe generation that GPU and slot can do"},
    FamilyHelp{"gpu_pcie_link_lanes_max", "PCIe lanes that GPU and slot can do"},
    FamilyHelp{"gpu_pcie_replays_total", "PCIe packets sent again"},
    FamilyHelp{"gpu_nvlink_links_active", "NVLinks that are up"},
    FamilyHelp{"gpu_nvlink_errors_total", "NVLink errors over all links"},
    FamilyHelp{"gpu_ecc_errors_total", "Memory errors seen by ECC; volatile since driver load"},
    FamilyHelp{"gpu_remapped_rows", "Memory rows replaced by spare ones"},
    FamilyHelp{"gpu_remap_pending", "1 when a row waits for a reset to be replaced"},
    FamilyHelp{"gpu_remap_failed", "1 when replacing a row has failed"},
    FamilyHelp{"gpu_retired_pages", "Memory pages taken out of use"},
    FamilyHelp{"gpu_processes", "Processes with a context on the device"},
    FamilyHelp{"cpu_utilization_ratio", "Busy share of the allowed cores of the node"},
    FamilyHelp{"cpu_frequency_hertz", "Mean frequency of the allowed cores of the node"},
    FamilyHelp{"cpu_energy_joules_total",
               "Energy since watching began, by RAPL; dram may be in package"},
    FamilyHelp{"cpu_memory_bytes", "Memory of the node by state"},
    FamilyHelp{"host_memory_bytes", "Memory of the machine; limit: the tightest cgroup's"},
};

constexpr std::array<ClockEventInfo, 9> kClockEvents{{
    {ClockEvent::GpuIdle, "gpu_idle", "idle", 'i'},
    {ClockEvent::ApplicationsClocks, "applications_clocks", "application clocks", 'a'},
    {ClockEvent::SwPowerCap, "sw_power_cap", "power cap", 'P'},
    {ClockEvent::HwSlowdown, "hw_slowdown", "hardware slowdown", 'H'},
    {ClockEvent::SyncBoost, "sync_boost", "sync boost", 's'},
    {ClockEvent::SwThermal, "sw_thermal", "temperature (software)", 'T'},
    {ClockEvent::HwThermal, "hw_thermal", "temperature (hardware)", 'T'},
    {ClockEvent::HwPowerBrake, "hw_power_brake", "power brake", 'B'},
    {ClockEvent::DisplayClocks, "display_clocks", "display clocks", 'd'},
}};

}  // namespace

std::span<const ClockEventInfo> clock_events() { return kClockEvents; }

const ReadingInfo& reading_info(Reading reading) {
  return kTable[static_cast<std::size_t>(reading)];
}

std::span<const ReadingInfo> reading_table() { return kTable; }

std::string_view family_help(std::string_view family) {
  const auto found = std::find_if(kHelp.begin(), kHelp.end(),
                                  [&](const FamilyHelp& row) { return row.family == family; });
  MUSTER_CHECK(found != kHelp.end());
  return found->help;
}

std::optional<double> chip_temperature(const Readings& readings) {
  const auto core = readings.get(Reading::GpuTemperatureCore);
  return core ? core : readings.get(Reading::GpuTemperatureHotspot);
}

std::optional<Reading> find_reading(std::string_view name) {
  const auto found = std::find_if(kTable.begin(), kTable.end(),
                                  [&](const ReadingInfo& row) { return row.name == name; });
  return found == kTable.end() ? std::nullopt : std::optional(found->reading);
}

}  // namespace muster

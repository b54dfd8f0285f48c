#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace muster {

/// How often a reading is taken.
enum class Tier : std::uint8_t {
  Fast,    // 100 ms unless asked otherwise
  Medium,  // 1 s
  Slow,    // 10 s
};
inline constexpr std::size_t kTierCount = 3;

/// Which tiers are due, a bit for each.
using TierSet = std::bitset<kTierCount>;
inline bool is_due(TierSet due, Tier tier) { return due.test(static_cast<std::size_t>(tier)); }

enum class ReadingType : std::uint8_t { Gauge, Counter };

/// What a reading is about.
enum class ReadingScope : std::uint8_t { Gpu, Cpu, Host };

/// Every number that is read from a device. `reading_info` tells name, unit, tier and metric of
/// each; the order is that of exposition.
enum class Reading : std::uint8_t {
  // Fast, GPU: two driver calls in all on NVIDIA.
  GpuUtilization,
  GpuMemoryBusy,
  GpuPowerInstant,
  GpuPowerAverage,
  GpuEnergy,
  GpuClockEvents,  // medium; a bit mask, see ClockEvent
  // Medium, GPU.
  GpuModulePowerInstant,
  GpuModulePowerAverage,
  GpuMemoryPowerInstant,
  GpuMemoryUsed,
  GpuMemoryFree,
  GpuMemoryReserved,
  GpuMemorySize,
  GpuTemperatureCore,
  GpuTemperatureHotspot,
  GpuTemperatureMemory,
  GpuTemperatureHeadroom,
  GpuClockGraphics,
  GpuClockSm,
  GpuClockMemory,
  GpuClockVideo,
  GpuSmActive,
  GpuSmOccupancy,
  GpuTensorActiveAny,
  GpuTensorActiveHmma,
  GpuTensorActiveImma,
  GpuTensorActiveDfma,
  GpuDramActive,
  GpuPipeFp64Active,
  GpuPipeFp32Active,
  GpuPipeFp16Active,
  GpuPipeIntActive,
  GpuThrottleSwPowerCap,
  GpuThrottleSyncBoost,
  GpuThrottleSwThermal,
  GpuThrottleHwThermal,
  GpuThrottleHwPowerBrake,
  GpuPcieSent,
  GpuPcieReceived,
  GpuNvlinkSent,
  GpuNvlinkReceived,
  GpuXgmiSent,
  GpuXgmiReceived,
  GpuRecoveryAction,
  // Slow, GPU.
  GpuPowerLimitEnforced,
  GpuPowerLimitDefault,
  GpuPowerLimitMin,
  GpuPowerLimitMax,
  GpuTemperatureLimitShutdown,
  GpuTemperatureLimitSlowdown,
  GpuTemperatureLimitCore,
  GpuTemperatureLimitMemory,
  GpuClockMaxGraphics,
  GpuClockMaxSm,
  GpuClockMaxMemory,
  GpuClockMaxVideo,
  GpuPcieGeneration,
  GpuPcieLanes,
  GpuPcieGenerationMax,
  GpuPcieLanesMax,
  GpuPcieReplays,
  GpuNvlinkLinksActive,
  GpuNvlinkCrcFlitErrors,
  GpuNvlinkCrcDataErrors,
  GpuNvlinkReplayErrors,
  GpuNvlinkRecoveryErrors,
  GpuEccCorrectedVolatile,
  GpuEccUncorrectedVolatile,
  GpuEccCorrectedAggregate,
  GpuEccUncorrectedAggregate,
  GpuRemappedRowsCorrectable,
  GpuRemappedRowsUncorrectable,
  GpuRemapPending,
  GpuRemapFailed,
  GpuRetiredPagesSingleBit,
  GpuRetiredPagesDoubleBit,
  GpuProcessCount,
  // Medium, a CPU device (a NUMA node).
  CpuUtilization,
  CpuFrequency,  // slow: the kernel asks every core
  CpuEnergyPackage,
  CpuEnergyDram,
  CpuMemorySize,
  CpuMemoryFree,
  CpuMemoryAvailable,
  // Medium, the machine; carried by cpu:0.
  HostMemorySize,
  HostMemoryAvailable,
  HostMemoryLimit,
};
inline constexpr std::size_t kReadingCount = static_cast<std::size_t>(Reading::HostMemoryLimit) + 1;

/// The bits of Reading::GpuClockEvents: why the clock is below its maximum right now.
/// Source: nvml.h 13.3, nvmlClocksEventReason*; AMD's throttle status is brought to the same bits.
enum class ClockEvent : std::uint16_t {
  GpuIdle = 0x1,
  ApplicationsClocks = 0x2,
  SwPowerCap = 0x4,
  HwSlowdown = 0x8,
  SyncBoost = 0x10,
  SwThermal = 0x20,
  HwThermal = 0x40,
  HwPowerBrake = 0x80,
  DisplayClocks = 0x100,
};

struct ClockEventInfo {
  ClockEvent event;
  std::string_view reason;  // the label: "sw_power_cap"
  std::string_view words;   // for people: "power cap"
  char letter;              // for narrow tables: 'P'; a small letter is no reason for concern
};

/// In the order of the bits.
std::span<const ClockEventInfo> clock_events();

/// One row of the table of readings.
struct ReadingInfo {
  Reading reading;
  std::string_view name;    // "power_instant_watts": in JSON, and what --metrics takes
  std::string_view family;  // "gpu_power_watts": the metric, without "muster_"
  std::string_view labels;  // "window=\"instant\",scope=\"gpu\"", or empty
  std::string_view unit;    // "W"; empty for counts
  ReadingType type;
  ReadingScope scope;
  Tier tier;
};

/// The row of a reading. Units of values: watts, joules, bytes, celsius, hertz, seconds, and
/// ratios from 0 to 1; counters only rise, but for a reset of the device.
const ReadingInfo& reading_info(Reading reading);

/// All rows, in the order of the enumeration; rows of a family are neighbours.
std::span<const ReadingInfo> reading_table();

/// What a family means, for HELP lines: "Busy share of the last driver period, 0 to 1".
std::string_view family_help(std::string_view family);

/// The reading of a name ("power_instant_watts"); nullopt if there is none.
std::optional<Reading> find_reading(std::string_view name);

/// Readings that are there. A reading that could not be taken is not set: there are no sentinels.
class Readings {
 public:
  void set(Reading reading, double value) {
    values_[index(reading)] = value;
    present_.set(index(reading));
  }
  void clear(Reading reading) { present_.reset(index(reading)); }
  bool has(Reading reading) const { return present_.test(index(reading)); }
  std::optional<double> get(Reading reading) const {
    return has(reading) ? std::optional(values_[index(reading)]) : std::nullopt;
  }
  std::size_t count() const { return present_.count(); }

 private:
  static constexpr std::size_t index(Reading reading) { return static_cast<std::size_t>(reading); }

  std::array<double, kReadingCount> values_{};
  std::bitset<kReadingCount> present_;
};

/// The temperature to show for a chip: its core's, else its hottest spot's (AMD's MI300 tell only
/// that one).
std::optional<double> chip_temperature(const Readings& readings);

}  // namespace muster

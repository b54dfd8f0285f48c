#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "spec/reading.h"

namespace muster {

enum class MetricType : std::uint8_t { Gauge, Counter, Histogram };

/// "gauge", "counter", "histogram".
std::string_view metric_type_name(MetricType type);

/// A metric family that is worked out rather than read from a device: reading_table() has the
/// others.
struct ComputedFamily {
  std::string_view name;    // without "muster_"
  std::string_view help;    // for the HELP line
  std::string_view labels;  // "gpu, uuid, xid": names, for the documentation
  std::string_view unit;    // "s", "B"; empty for counts
  MetricType type = MetricType::Gauge;
};

inline constexpr ComputedFamily kBuildInfo{"build_info", "Version of muster; always 1",
                                           "version, build", ""};
inline constexpr ComputedFamily kMachineInfo{
    "machine_info", "The machine that is watched, and why it has no GPU; always 1",
    "machine, gpu_absent_reason", ""};
inline constexpr ComputedFamily kGpuInfo{
    "gpu_info", "What of a GPU does not change; always 1",
    "gpu, uuid, mig, name, driver_version, cuda_version, pci_bus_id, compute_capability, vbios, "
    "serial, numa_node, mig_profile",
    ""};
inline constexpr ComputedFamily kGpuUp{
    "gpu_up", "1 while the GPU answers, 0 when it hangs or is lost", "gpu, uuid", ""};
inline constexpr ComputedFamily kGpuExpected{
    "gpu_expected", "GPUs that were there when watching began, slices not counted", "", ""};
inline constexpr ComputedFamily kXidErrors{"gpu_xid_errors_total",
                                           "XID errors that the driver reported, by code",
                                           "gpu, uuid, xid", "", MetricType::Counter};
inline constexpr ComputedFamily kXidLast{"gpu_xid_last_timestamp_seconds",
                                         "When this XID was last reported, Unix time",
                                         "gpu, uuid, xid", "s"};
inline constexpr ComputedFamily kHealthState{"gpu_health_state",
                                             "Verdict of this watch: 0 well, 1 warning, 2 unfit",
                                             "gpu, uuid, watch", ""};
inline constexpr ComputedFamily kProcessMemory{
    "gpu_process_memory_bytes", "Device memory of a process; the largest 32 of each device",
    "gpu, uuid, mig, pid, command", "B"};
inline constexpr ComputedFamily kTicks{"gpu_collector_tick_seconds",
                                       "Duration of a visit to a device, by its slowest tier",
                                       "tier", "s", MetricType::Histogram};
inline constexpr ComputedFamily kMissedTicks{"gpu_collector_missed_ticks_total",
                                             "Visits that were due and did not take place", "tier",
                                             "", MetricType::Counter};
inline constexpr ComputedFamily kCalls{"gpu_collector_calls_total",
                                       "Calls of this driver function since the sampler started",
                                       "call", "", MetricType::Counter};
inline constexpr ComputedFamily kCallSeconds{"gpu_collector_call_seconds_total",
                                             "Time inside this driver function", "call", "s",
                                             MetricType::Counter};
inline constexpr ComputedFamily kCallErrors{"gpu_collector_errors_total",
                                            "Calls that ended with this code of the driver's",
                                            "call, code", "", MetricType::Counter};
inline constexpr ComputedFamily kReadingErrors{
    "gpu_collector_reading_errors_total", "Readings of a device that ended with this code",
    "gpu, uuid, mig or device; code", "", MetricType::Counter};
inline constexpr ComputedFamily kLastSuccess{"gpu_collector_last_success_timestamp_seconds",
                                             "When the device last answered, Unix time",
                                             "gpu, uuid, mig or device", "s"};
inline constexpr ComputedFamily kRestarts{"gpu_collector_restarts_total",
                                          "Starts of the sampler process after the first", "", "",
                                          MetricType::Counter};
inline constexpr ComputedFamily kCpuSeconds{"gpu_collector_cpu_seconds_total",
                                            "CPU time of the sampler process", "", "s",
                                            MetricType::Counter};
inline constexpr ComputedFamily kResidentBytes{"gpu_collector_resident_bytes",
                                               "Memory of the sampler process", "", "B"};

/// All of them, in the order of exposition.
std::span<const ComputedFamily* const> computed_families();

/// A family of the table of readings, with every reading of it.
struct ReadingFamily {
  std::string_view name;
  ReadingType type = ReadingType::Gauge;
  ReadingScope scope = ReadingScope::Gpu;
  std::vector<Reading> readings;
};

/// The table of readings by family, each family once, in the order in which they first appear.
const std::vector<ReadingFamily>& reading_families();

}  // namespace muster

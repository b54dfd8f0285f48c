#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"

namespace muster {

/// For how long the firmware has held the clock down, each in steps of its own; what matters is by
/// how much they rise between two looks.
struct AmdResidencies {
  std::uint64_t power = 0;             // package power limits
  std::uint64_t thermal = 0;           // socket, memory or regulators too warm
  std::uint64_t hot_signal = 0;        // PROCHOT
  std::optional<std::uint64_t> steps;  // all of the firmware's steps so far; nullopt: not told
};

/// What a gpu_metrics table tells; what it does not tell is absent.
struct AmdMetrics {
  bool is_apu = false;                    // its table is one of those for APUs
  std::optional<double> activity;         // graphics and compute, 0 to 1
  std::optional<double> memory_activity;  // memory controller, 0 to 1
  std::optional<double> power_now;        // watts, of the GPU
  std::optional<double> power_average;    // the same, filtered by the firmware
  std::optional<double> socket_power;     // watts, CPU cores included; APUs
  std::optional<double> energy_joules;    // since the driver was loaded
  std::optional<double> clock_graphics;   // hertz, the mean of all dies
  std::optional<double> clock_memory;     // hertz
  std::optional<double> clock_video;      // hertz, the mean of all engines
  std::optional<std::uint64_t> throttle;  // bits, independent of the ASIC
  std::optional<AmdResidencies> residencies;
  std::optional<double> firmware_seconds;  // the firmware's clock at these values
  std::optional<double> xgmi_read_bytes;   // over all links, since the driver was loaded
  std::optional<double> xgmi_written_bytes;
  std::optional<double> pcie_replays;
  std::vector<std::optional<double>> partition_activity;  // 0 to 1, one for each partition
};

/// Reads a table as the file gpu_metrics holds it: v1.1 to v1.8, v2.1 to v2.4, v3.0. The tables of
/// v1.4 and later are no extensions of each other; each has its own offsets. All ones means that
/// the ASIC does not tell a field. A share above 100 % is none.
///
/// Of v2.1 to v2.3 only the throttle bits are taken: their units differ from ASIC to ASIC. The
/// energy of v1.1 to v1.3 is left out for the same reason, and the throttle status of v1.4 and v1.5
/// because the driver of MI300 does not fill it.
///
/// Errors: Corrupt (not of the size of its version), Unsupported (another version).
/// Source: Linux, drivers/gpu/drm/amd/include/kgd_pp_interface.h (2be02a7c996a, natural alignment);
/// units of v1.1 to v1.3: pm/swsmu/smu11/*_ppt.c and smu13/*_ppt.c; all ones: smu_cmn.h,
/// smu_cmn_init_soft_gpu_metrics.
Result<AmdMetrics> parse_gpu_metrics(std::span<const std::byte> bytes);

/// `throttle` as bits of ClockEvent.
/// Source: drivers/gpu/drm/amd/pm/swsmu/inc/amdgpu_smu.h, SMU_THROTTLER_*_BIT.
std::uint32_t clock_events_of(std::uint64_t throttle);

}  // namespace muster

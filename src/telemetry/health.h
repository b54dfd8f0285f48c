#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "spec/telemetry.h"

namespace muster {

/// How much of the last `window` a clock event of a device held; nullopt: not known.
using ClockEventShare =
    std::function<std::optional<double>(std::uint32_t device, ClockEvent event)>;

/// Judges one device by its readings, XIDs and state: every watch that applies, in a fixed order.
/// The same rules stand behind gpu_health_state, `muster top` and `muster doctor`.
///
/// Watches: present, xid, recovery, ecc, remap, pages, thermal, power_brake, nvlink, pcie, memory.
/// Threads: pure. Source: each rule's threshold in health.cpp.
std::vector<HealthFinding> judge(const DeviceStatus& status, double now_unix_seconds);

/// The XIDs for which `judge` calls the device unfit now, by code.
///
/// Threads: pure. Source: kUnfitXids and kXidSeconds in health.cpp.
std::vector<std::uint32_t> unfit_xids(const DeviceStatus& status, double now_unix_seconds);

/// Why a device is slower than it could be, from the last minute, the largest share first:
/// "power cap 62 % of the last minute". Empty: nothing held it back.
std::string why_slow(const DeviceStatus& status,
                     const std::vector<std::pair<ClockEvent, double>>& shares);

}  // namespace muster

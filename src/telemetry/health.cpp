// The rules by which a device is judged, each with the source of its threshold. A rule whose
// readings are missing gives no finding at all, so "well" always means that something was looked
// at. Unfit is kept for what spoils results or stops work; what only slows a device down is a
// warning.

#include "telemetry/health.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "spec/gpu_catalogue.h"

namespace muster {
namespace {

using enum HealthState;

HealthFinding finding(std::string_view watch, HealthState state, std::string sentence) {
  return {std::string(watch), state, state == Well ? "" : std::move(sentence)};
}

/// Application faults and what the driver has mended by itself: 13 graphics engine exception, 31
/// MMU fault, 43 channel stopped, 45 preemptive removal, 63 row remapped or page retired, 92 high
/// rate of corrected ECC errors.
/// Source: NVIDIA, XID Errors (r570), section "XID error listing": no action on the GPU.
constexpr std::array<std::uint32_t, 6> kHarmlessXids{13, 31, 43, 45, 63, 92};

/// 48 double-bit ECC, 62 halt of the internal microcontroller, 64 row remap or retirement failed,
/// 74 NVLink, 79 fallen off the bus, 95 uncontained ECC, 119 and 120 GSP timeout and error, 140
/// unrecovered ECC.
/// Source: NVIDIA, XID Errors (r570), the codes whose action is a reset, a restart or a return.
constexpr std::array<std::uint32_t, 9> kUnfitXids{48, 62, 64, 74, 79, 95, 119, 120, 140};

/// An XID counts for an hour. Damage that lasts is told by the watches of ECC, remaps, recovery and
/// presence; what left no trace there is over.
constexpr double kXidSeconds = 3600;

HealthState xid_state(std::uint32_t code) {
  if (std::ranges::count(kUnfitXids, code) > 0) return Unfit;
  if (std::ranges::count(kHarmlessXids, code) > 0) return Well;
  return Warning;  // 94, contained ECC, and codes that no class is known of
}

// Well: it is harmless, or it has expired.
HealthState xid_state(std::uint32_t code, const XidCount& xid, double now_unix_seconds) {
  return now_unix_seconds - xid.last_unix_seconds > kXidSeconds ? Well : xid_state(code);
}

HealthFinding judge_xids(const DeviceStatus& status, double now_unix_seconds) {
  auto worst = Well;
  std::string codes;
  for (const auto& [code, xid] : status.xids) {
    const auto state = xid_state(code, xid, now_unix_seconds);
    if (state == Well) continue;
    worst = std::max(worst, state);
    codes += fmt::format("{}{} ({} times)", codes.empty() ? "" : ", ", code, xid.count);
  }
  return finding("xid", worst, "the driver reported XID " + codes);
}

/// Source: nvml.h 13.3, nvmlDeviceGpuRecoveryAction_t.
std::string recovery_words(double action) {
  constexpr std::array kActions{"none", "reset the GPU", "restart the machine",
                                "stop peer-to-peer traffic", "drain the GPU and reset it"};
  const auto index = static_cast<std::size_t>(action);
  return index < kActions.size() ? kActions[index] : fmt::format("action {}", index);
}

void judge_recovery(const DeviceStatus& status, std::vector<HealthFinding>& findings) {
  const auto action = status.readings.get(Reading::GpuRecoveryAction);
  if (!action) return;
  findings.push_back(finding("recovery", *action > 0 ? Unfit : Well,
                             "the driver asks to " + recovery_words(*action)));
}

void judge_ecc(const DeviceStatus& status, std::vector<HealthFinding>& findings) {
  const auto errors = status.readings.get(Reading::GpuEccUncorrectedVolatile);
  if (!errors) return;
  // Any: data was wrong since the driver was loaded. Source: DCGM, DcgmHealthWatch.cpp,
  // MonitorMemDbe.
  findings.push_back(
      finding("ecc", *errors > 0 ? Unfit : Well,
              fmt::format("uncorrected memory errors since the driver was loaded: {}", *errors)));
}

void judge_remap(const DeviceStatus& status, std::vector<HealthFinding>& findings) {
  const auto failed = status.readings.get(Reading::GpuRemapFailed);
  const auto pending = status.readings.get(Reading::GpuRemapPending);
  if (!failed && !pending) return;
  // Source: NVIDIA, GPU Memory Error Management, section "Row remapping".
  if (failed.value_or(0) > 0) {
    findings.push_back(finding("remap", Unfit, "a faulty memory row could not be remapped"));
  } else {
    findings.push_back(finding("remap", pending.value_or(0) > 0 ? Warning : Well,
                               "a memory row is remapped at the next reset"));
  }
}

void judge_pages(const DeviceStatus& status, std::vector<HealthFinding>& findings) {
  const auto single = status.readings.get(Reading::GpuRetiredPagesSingleBit);
  const auto twofold = status.readings.get(Reading::GpuRetiredPagesDoubleBit);
  if (!single && !twofold) return;
  // Source: DCGM, dcgm_structs.h: DCGM_LIMIT_MAX_RETIRED_PAGES 63 and ..._SOFT_LIMIT 15.
  constexpr double kUnfitPages = 63;
  constexpr double kWarningPages = 15;
  const double pages = single.value_or(0) + twofold.value_or(0);
  const auto state = pages >= kUnfitPages ? Unfit : (pages > kWarningPages ? Warning : Well);
  findings.push_back(finding("pages", state, fmt::format("retired memory pages: {}", pages)));
}

bool has_event(double mask, ClockEvent event) {
  return (static_cast<std::uint64_t>(mask) & static_cast<std::uint64_t>(event)) != 0;
}

void judge_thermal(const DeviceStatus& status, std::vector<HealthFinding>& findings) {
  const auto events = status.readings.get(Reading::GpuClockEvents);
  const auto headroom = status.readings.get(Reading::GpuTemperatureHeadroom);
  if (!events && !headroom) return;
  // Within the sensor's own error of the point where the clock is lowered.
  constexpr double kHeadroomLeast = 5;
  if (events && has_event(*events, ClockEvent::HwThermal)) {
    findings.push_back(
        finding("thermal", Warning, "the hardware lowers the clock because it is too hot"));
  } else {
    const bool is_near = headroom && *headroom < kHeadroomLeast;
    findings.push_back(
        finding("thermal", is_near ? Warning : Well,
                fmt::format("degrees until the clock is lowered: {}", headroom.value_or(0))));
  }
}

void judge_power_brake(const DeviceStatus& status, std::vector<HealthFinding>& findings) {
  const auto events = status.readings.get(Reading::GpuClockEvents);
  if (!events) return;
  findings.push_back(finding("power_brake",
                             has_event(*events, ClockEvent::HwPowerBrake) ? Warning : Well,
                             "the machine's power supply holds the clock down"));
}

void judge_nvlink(const DeviceStatus& status, std::vector<HealthFinding>& findings) {
  const auto active = status.readings.get(Reading::GpuNvlinkLinksActive);
  const auto recoveries = status.readings.get(Reading::GpuNvlinkRecoveryErrors);
  if (!active && !recoveries) return;
  // How many there should be is known where a switch joins all of them.
  const auto* facts = find_gpu_by_driver_name(status.identity.device.model);
  if (active && facts != nullptr && facts->fabric == GpuFabric::Switch &&
      *active < facts->link_count) {
    findings.push_back(
        finding("nvlink", Warning,
                fmt::format("NVLinks that are up: {} of {}", *active, facts->link_count)));
    return;
  }
  findings.push_back(
      finding("nvlink", recoveries.value_or(0) > 0 ? Warning : Well,
              fmt::format("NVLinks had to be trained again: {} times", recoveries.value_or(0))));
}

void judge_pcie(const DeviceStatus& status, std::vector<HealthFinding>& findings) {
  const auto& readings = status.readings;
  const auto lanes = readings.get(Reading::GpuPcieLanes);
  const auto lanes_max = readings.get(Reading::GpuPcieLanesMax);
  const auto generation = readings.get(Reading::GpuPcieGeneration);
  const auto generation_max = readings.get(Reading::GpuPcieGenerationMax);
  if (!(lanes && lanes_max) && !(generation && generation_max)) return;
  // An idle GPU lowers its link to save power; one that works has it all.
  constexpr double kBusy = 0.05;
  const bool is_busy = readings.get(Reading::GpuUtilization).value_or(0) > kBusy;
  const bool is_narrow = lanes && lanes_max && *lanes < *lanes_max;
  const bool is_slow = generation && generation_max && *generation < *generation_max;
  findings.push_back(
      finding("pcie", is_busy && (is_narrow || is_slow) ? Warning : Well,
              fmt::format("PCIe link while busy: generation {} of {}, lanes {} of {}",
                          generation.value_or(0), generation_max.value_or(0), lanes.value_or(0),
                          lanes_max.value_or(0))));
}

void judge_memory(const DeviceStatus& status, std::vector<HealthFinding>& findings) {
  const auto& readings = status.readings;
  auto size = readings.get(Reading::GpuMemorySize);
  auto used = readings.get(Reading::GpuMemoryUsed);
  if (status.identity.device.kind == DeviceKind::Cpu) {
    // What may be used is the tightest limit, and the whole machine where there is none.
    size = readings.get(Reading::HostMemoryLimit);
    if (!size) size = readings.get(Reading::HostMemorySize);
    const auto available = readings.get(Reading::HostMemoryAvailable);
    if (size && available) used = *size - std::min(*available, *size);
  }
  if (!size || !used || *size <= 0) return;
  constexpr double kFull = 0.95;
  const double share = *used / *size;
  findings.push_back(finding("memory", share > kFull ? Warning : Well,
                             fmt::format("memory is used to {:.0f} %", share * 100)));
}

}  // namespace

std::vector<HealthFinding> judge(const DeviceStatus& status, double now_unix_seconds) {
  std::vector<HealthFinding> findings;
  findings.push_back(finding("present", status.is_up ? Well : Unfit, status.down_reason));
  if (status.identity.device.kind != DeviceKind::Cpu && !status.identity.parent) {
    findings.push_back(judge_xids(status, now_unix_seconds));
  }
  judge_recovery(status, findings);
  judge_ecc(status, findings);
  judge_remap(status, findings);
  judge_pages(status, findings);
  judge_thermal(status, findings);
  judge_power_brake(status, findings);
  judge_nvlink(status, findings);
  judge_pcie(status, findings);
  judge_memory(status, findings);
  return findings;
}

std::vector<std::uint32_t> unfit_xids(const DeviceStatus& status, double now_unix_seconds) {
  std::vector<std::uint32_t> codes;
  for (const auto& [code, xid] : status.xids) {
    if (xid_state(code, xid, now_unix_seconds) == Unfit) codes.push_back(code);
  }
  return codes;
}

std::string why_slow(const DeviceStatus& status,
                     const std::vector<std::pair<ClockEvent, double>>& shares) {
  if (!status.is_up) return "";
  // Below a percent it is noise, and would be printed as 0 %.
  constexpr double kShareLeast = 0.01;
  std::vector<std::pair<ClockEvent, double>> sorted;
  for (const auto& share : shares) {
    // An idle GPU, clocks that somebody set, and a display are no reason to look further.
    const bool is_cause = share.first != ClockEvent::GpuIdle &&
                          share.first != ClockEvent::ApplicationsClocks &&
                          share.first != ClockEvent::DisplayClocks;
    if (is_cause && share.second >= kShareLeast) sorted.push_back(share);
  }
  std::ranges::stable_sort(sorted,
                           [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [event, share] : sorted) {
    const auto info = std::ranges::find(clock_events(), event, &ClockEventInfo::event);
    if (info == clock_events().end()) continue;
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", info->words, share * 100);
  }
  return text.empty() ? "" : text + " of the last minute";
}

}  // namespace muster

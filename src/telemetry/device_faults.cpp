// One rule decides what a fault is, in health.cpp; here is only which of its findings are about
// what a device computes, and what has changed. A slice has its GPU's faults.

#include "telemetry/device_faults.h"

#include <fmt/format.h>

#include <algorithm>

#include "telemetry/watched_status.h"

namespace muster {
namespace {

const DeviceStatus* parent_of(const DeviceStatus& slice, const TelemetrySnapshot& snapshot) {
  if (!slice.identity.parent) return nullptr;
  for (const auto& status : snapshot.devices) {
    if (status.identity.device.uuid == slice.identity.parent) return &status;
  }
  return nullptr;
}

std::optional<std::string> fault_of(const DeviceStatus& status, std::optional<double> ecc_before) {
  const auto errors = status.readings.get(Reading::GpuEccUncorrectedVolatile);
  const bool are_more = errors && *errors > ecc_before.value_or(*errors);
  std::string fault;
  for (const auto& [watch, state, sentence] : status.health) {
    if (state != HealthState::Unfit) continue;
    const bool is_fault = watch == "xid" || watch == "recovery" || (watch == "ecc" && are_more);
    if (is_fault) fault += fmt::format("{}{}", fault.empty() ? "" : "; ", sentence);
  }
  return fault.empty() ? std::nullopt : std::optional(std::move(fault));
}

}  // namespace

DeviceFaults::DeviceFaults(const std::vector<Device>& devices) {
  for (const auto& device : devices) devices_.push_back({.device = device});
}

std::vector<DeviceFault> DeviceFaults::changes(const TelemetrySnapshot& snapshot) {
  std::vector<DeviceFault> changes;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    auto& known = devices_[i];
    if (known.device.kind == DeviceKind::Cpu) continue;
    const auto* status = watched_status(known.device, snapshot);
    if (status != nullptr) {
      if (const auto* parent = parent_of(*status, snapshot)) status = parent;
    }
    if (status == nullptr) continue;
    const auto errors = status->readings.get(Reading::GpuEccUncorrectedVolatile);
    const bool has_recovery = status->readings.has(Reading::GpuRecoveryAction);
    if (!known.ecc_before) known.ecc_before = errors;
    known.has_recovery |= has_recovery;
    auto fault = fault_of(*status, known.ecc_before);
    // A reading that is missing says nothing.
    const bool is_told =
        status->is_up && (errors || !known.ecc_before) && (has_recovery || !known.has_recovery);
    if (fault == known.fault || (!fault && !is_told)) continue;
    known.fault = fault;
    changes.push_back({.device = i, .fault = std::move(fault)});
  }
  return changes;
}

}  // namespace muster

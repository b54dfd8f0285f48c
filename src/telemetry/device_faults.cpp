// One rule decides what a fault is, in health.cpp; here is only which of its findings are about
// what a device computes, and what has changed. A slice has its GPU's faults.
//
// Memory errors are one only where the driver does not say by itself whether a reset is needed. By
// those that it has contained nobody got wrong results, and one process has ended; the counter
// stays until a reset. Source: NVIDIA, GPU Memory Error Management, section "Error Containment".
//
// Changes are found by causes and not by sentences. Those say less when an XID expires or a reading
// is missing for a moment, and a device that an operator has started in spite of its fault must not
// be stopped for that.

#include "telemetry/device_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "telemetry/health.h"
#include "telemetry/watched_status.h"

namespace muster {
namespace {

constexpr const char* kEcc = "ecc";

struct FoundFault {
  std::string sentences;
  std::map<std::string, double> causes;  // how often; empty: there is no fault
  bool has_xid = false;
};

const DeviceStatus* parent_of(const DeviceStatus& slice, const TelemetrySnapshot& snapshot) {
  if (!slice.identity.parent) return nullptr;
  for (const auto& status : snapshot.devices) {
    if (status.identity.device.uuid == slice.identity.parent) return &status;
  }
  return nullptr;
}

// ecc_before: memory errors beyond so many are a fault; nullopt: they are none.
FoundFault fault_of(const DeviceStatus& status, double unix_seconds,
                    std::optional<double> ecc_before) {
  FoundFault fault;
  const auto errors = status.readings.get(Reading::GpuEccUncorrectedVolatile);
  for (const auto& [watch, state, sentence] : status.health) {
    if (state != HealthState::Unfit) continue;
    if (watch == "xid") {
      for (const auto code : unfit_xids(status, unix_seconds)) {
        fault.causes[fmt::format("xid {}", code)] = static_cast<double>(status.xids.at(code).count);
        fault.has_xid = true;
      }
    } else if (watch == "recovery") {
      const auto action = status.readings.get(Reading::GpuRecoveryAction);
      fault.causes[fmt::format("recovery {}", action.value_or(0))] = 1;
    } else if (watch == "ecc" && errors && *errors > ecc_before.value_or(*errors)) {
      fault.causes[kEcc] = *errors;
    } else {
      continue;
    }
    fault.sentences += fmt::format("{}{}", fault.sentences.empty() ? "" : "; ", sentence);
  }
  return fault;
}

// Memory errors are read every few seconds, and so after the XID that the driver reported for them
// at once. While one counts, more errors are what was told; others have an XID of their own.
bool is_news(const FoundFault& fault, const std::map<std::string, double>& told) {
  return std::any_of(fault.causes.begin(), fault.causes.end(), [&](const auto& cause) {
    const auto known = told.find(cause.first);
    const bool is_known = known != told.end() && cause.second <= known->second;
    return !is_known && !(cause.first == kEcc && fault.has_xid);
  });
}

}  // namespace

DeviceFaults::DeviceFaults(const std::vector<Device>& devices) {
  for (const auto& device : devices) devices_.push_back({.device = device});
}

// A counter that has fallen began at zero again, so all that it shows is new.
void DeviceFaults::Known::take_errors(double errors) {
  if (!ecc_before) ecc_before = errors;
  if (ecc_last && errors < *ecc_last) {
    ecc_before = 0;
    if (const auto ecc = told.find(kEcc); ecc != told.end()) ecc->second = 0;
  }
  ecc_last = errors;
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
    if (errors) known.take_errors(*errors);
    known.has_recovery |= has_recovery;
    const auto ecc_before = known.has_recovery ? std::nullopt : known.ecc_before;
    auto fault = fault_of(*status, snapshot.unix_seconds, ecc_before);
    if (fault.causes.empty()) {
      // A reading that is missing says nothing.
      const bool is_told = known.has_recovery ? has_recovery : errors || !known.ecc_before;
      if (known.told.empty() || !status->is_up || !is_told) continue;
      known.told.clear();
      changes.push_back({.device = i, .fault = std::nullopt});
      continue;
    }
    if (is_news(fault, known.told)) {
      changes.push_back({.device = i, .fault = std::move(fault.sentences)});
    }
    for (const auto& [cause, count] : fault.causes) {
      known.told[cause] = std::max(known.told[cause], count);
    }
  }
  return changes;
}

}  // namespace muster

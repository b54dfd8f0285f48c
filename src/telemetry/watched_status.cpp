// Joins two lists that know devices by different names. A UUID decides where both sides have one;
// else the kind, the index and the MIG slice must agree.

#include "telemetry/watched_status.h"

namespace muster {
namespace {

// A UUID goes first because an index may change from one start of the driver to the next.
bool is_same(const Device& left, const Device& right) {
  if (left.kind != right.kind) return false;
  if (left.uuid && right.uuid) return *left.uuid == *right.uuid;
  if (left.kind == DeviceKind::Cpu) return left.cpus == right.cpus || left.index == right.index;
  return left.index == right.index && left.slice == right.slice;
}

}  // namespace

const DeviceStatus* watched_status(const Device& device, const TelemetrySnapshot& snapshot) {
  for (const auto& status : snapshot.devices) {
    if (is_same(device, status.identity.device)) return &status;
  }
  if (device.kind != DeviceKind::Cpu) return nullptr;
  for (const auto& status : snapshot.devices) {
    if (status.identity.device.kind == DeviceKind::Cpu) return &status;
  }
  return nullptr;
}

}  // namespace muster

// Which labels identify a series. A MIG slice is a device of its own but shares its board's
// sensors; a reading that is its board's is shown once, on the board, or a sum over devices would
// count it several times.

#include "metrics/series_labels.h"

#include <algorithm>

#include "metrics/metric_text.h"

namespace muster {
namespace {

const DeviceIdentity* parent_of(const DeviceIdentity& slice, const TelemetrySnapshot& snapshot) {
  const auto found = std::find_if(
      snapshot.devices.begin(), snapshot.devices.end(), [&](const DeviceStatus& other) {
        return !other.identity.parent && other.identity.device.uuid == slice.parent;
      });
  return found == snapshot.devices.end() ? nullptr : &found->identity;
}

// What a slice has of its own. The rest is its board's, and would be counted once for each slice.
bool is_of_slice(Reading reading) {
  switch (reading) {
    case Reading::GpuUtilization:
    case Reading::GpuMemoryUsed:
    case Reading::GpuMemoryFree:
    case Reading::GpuMemoryReserved:
    case Reading::GpuMemorySize:
    case Reading::GpuSmActive:
    case Reading::GpuSmOccupancy:
    case Reading::GpuTensorActiveAny:
    case Reading::GpuTensorActiveHmma:
    case Reading::GpuTensorActiveImma:
    case Reading::GpuTensorActiveDfma:
    case Reading::GpuDramActive:
    case Reading::GpuPipeFp64Active:
    case Reading::GpuPipeFp32Active:
    case Reading::GpuPipeFp16Active:
    case Reading::GpuPipeIntActive:
    case Reading::GpuProcessCount:
      return true;
    default:
      return false;
  }
}

// A slice carries its board's index too, so that both can be joined in a query.
LabelledDevice label_device(const DeviceStatus& status, const TelemetrySnapshot& snapshot) {
  LabelledDevice labelled;
  labelled.status = &status;
  const Device& device = status.identity.device;
  if (device.kind == DeviceKind::Cpu) {
    labelled.kind = SeriesKind::Cpu;
    append_label(labelled.labels, "device", device.name());
    return labelled;
  }
  const bool is_slice = status.identity.parent.has_value();
  const auto* const parent = is_slice ? parent_of(status.identity, snapshot) : nullptr;
  if (!is_slice || parent != nullptr) {
    append_label(labelled.labels, "gpu",
                 std::to_string(parent != nullptr ? parent->device.index : device.index));
  }
  if (device.uuid) append_label(labelled.labels, "uuid", *device.uuid);
  if (is_slice) {
    labelled.kind = SeriesKind::Slice;
    append_label(labelled.labels, "mig", std::to_string(device.index));
  }
  return labelled;
}

}  // namespace

bool is_shown(Reading reading, SeriesKind kind) {
  if (reading_info(reading).scope == ReadingScope::Gpu) {
    return kind == SeriesKind::Gpu || (kind == SeriesKind::Slice && is_of_slice(reading));
  }
  return kind == SeriesKind::Cpu;
}

std::vector<LabelledDevice> label_devices(const TelemetrySnapshot& snapshot) {
  std::vector<LabelledDevice> devices;
  devices.reserve(snapshot.devices.size());
  for (const DeviceStatus& status : snapshot.devices) {
    devices.push_back(label_device(status, snapshot));
  }
  return devices;
}

}  // namespace muster

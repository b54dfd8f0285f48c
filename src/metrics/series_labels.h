#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spec/telemetry.h"

namespace muster {

enum class SeriesKind : std::uint8_t { Gpu, Slice, Cpu };

/// A device of a snapshot with the labels that every series of it carries.
struct LabelledDevice {
  const DeviceStatus* status = nullptr;
  SeriesKind kind = SeriesKind::Gpu;
  std::string labels;  // gpu="3",uuid="GPU-…"; of a slice also mig="0"; of a CPU device="cpu:0"
};

/// Whether a device of this kind may show the reading. A slice shows only what it has of its own:
/// what is its board's would be counted once for each slice.
bool is_shown(Reading reading, SeriesKind kind);

/// The devices in the order of the snapshot. A slice carries the index of its GPU, its own UUID and
/// its number within the GPU.
///
/// Owner: they point into `snapshot`.
std::vector<LabelledDevice> label_devices(const TelemetrySnapshot& snapshot);

}  // namespace muster

#pragma once

#include <cstdint>
#include <string>

#include "views/top_data.h"

namespace muster {

/// A GPU as an H200 under load looks: 97 % busy, 98 of 151 GB, 627 of 700 W.
DeviceStatus busy_h200(std::uint32_t index);

/// A slice of the GPU with this index.
DeviceStatus h200_slice(std::uint32_t gpu_index, std::uint32_t index);

/// A NUMA node with four cores.
DeviceStatus busy_cpu(std::uint32_t index);

/// Turns a device into one that does not answer.
void take_down(DeviceStatus& status, const std::string& reason);

/// `gpus` of busy_h200 linked by a switch, and one CPU.
TelemetrySnapshot machine_of(std::uint32_t gpus);

/// The same with trends and a clock, as a frame is drawn from.
TopData frame_of(TelemetrySnapshot snapshot);

}  // namespace muster

#pragma once

#include <functional>
#include <vector>

#include "base/clock.h"
#include "config/config.h"
#include "spec/device.h"
#include "spec/telemetry.h"

namespace muster {

/// What the drivers of a run's devices report, as EmbedOptions::device_faults wants it: a sampler
/// process watches them while the function lives. Empty where none of them is a GPU.
///
/// Threads: not thread-safe; called by the run's loop.
std::function<std::vector<DeviceFault>()> watch_for_faults(const Config& config,
                                                           const std::vector<Device>& devices,
                                                           const Clock& clock);

}  // namespace muster

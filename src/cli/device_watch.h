#pragma once

#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "config/config.h"
#include "jobs/embed.h"
#include "spec/device.h"

namespace muster {

/// What the drivers of a run's devices report, as EmbedOptions::device_news wants it: a sampler
/// process watches them while the function lives. Empty where none of them is a GPU. Its end
/// waits for no driver, at most for a tenth of a second.
///
/// Threads: not thread-safe; called by the run's loop. The clock outlives the function.
/// Errors: those of collector_options.
Result<std::function<DeviceNews()>> watch_for_faults(const Config& config,
                                                     const std::vector<Device>& devices,
                                                     const Clock& clock);

}  // namespace muster

#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "spec/device.h"

namespace muster {

/// The devices that `names` means (as --devices), no more than the setting device_count_most.
///
/// Errors: those of parse_devices. Threads: pure.
Result<std::vector<Device>> chosen_devices(const Config& config, const std::string& names,
                                           const Inventory& inventory);

}  // namespace muster

#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "spec/device.h"

namespace muster {

/// The NVIDIA GPUs in PCI order, asked of the first of `libraries` that opens; it is closed again.
/// A GPU that the driver lists but cannot open (fallen off the bus) is left out.
///
/// Errors: Unavailable, with the reason in words for people: no driver, a driver that refuses, no
/// GPU. Threads: thread-safe. Source: NVML API reference (nvmlReturn_t, nvmlPciInfo_t,
/// nvmlMemory_t); header 13.3.
Result<std::vector<Device>> find_nvidia_gpus(const std::vector<std::string>& libraries);

}  // namespace muster

#pragma once

#include <memory>
#include <vector>

#include "hw/nvml/nvml_identity.h"

namespace muster {

/// A GPU whose events are waited for, and what number they carry.
struct NvmlEventDevice {
  NvmlDevice handle = nullptr;
  std::uint32_t device = 0;
};

/// XIDs, double-bit ECC errors and recovery actions of the GPUs, of each what it supports. nullptr
/// where none can be registered. Events of a slice are its GPU's.
std::unique_ptr<DeviceEventSource> make_nvml_events(std::shared_ptr<const NvmlLibrary> library,
                                                    std::vector<NvmlEventDevice> devices,
                                                    NvmlCaller& call);

}  // namespace muster

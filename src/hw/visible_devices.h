#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/telemetry.h"

namespace muster {

/// What a CUDA program calls each device: its ordinal, or nullopt where it is hidden. Slices
/// (`parent` is set) follow their GPU in `devices`; whole GPUs are in PCI order.
///
/// order: CUDA_DEVICE_ORDER. "PCI_BUS_ID" is PCI order. Everything else, and nullopt, is CUDA's
/// FASTEST_FIRST, which makes the GPU it takes for the fastest device 0. Its rule is not published:
/// here it is the highest compute capability, then the most multiprocessors, then the first on the
/// bus; the others follow in PCI order. Where all GPUs are of one model that is PCI order too;
/// where they differ it is an estimate.
///
/// visible: CUDA_VISIBLE_DEVICES, a comma-separated list of indices in that order, or of UUIDs
/// ("GPU-…", as few digits as are unique; "MIG-…"; of older drivers "MIG-GPU-…/gi/ci"). nullopt:
/// all are visible. An empty text hides all; an entry that names nothing hides itself and all after
/// it, as does one of another form than the first; an entry that is there twice hides all.
///
/// A GPU in MIG mode is its slices. A program sees at most one slice, and then nothing else.
///
/// Source: CUDA Programming Guide, "CUDA Environment Variables"; NVIDIA MIG User Guide, "CUDA
/// Device Enumeration"; PyTorch, torch/cuda/__init__.py, _parse_visible_devices, for repeated
/// entries, mixed forms and what counts as a number.
std::vector<std::optional<std::uint32_t>> cuda_ordinals(const std::vector<DeviceIdentity>& devices,
                                                        const std::optional<std::string>& visible,
                                                        const std::optional<std::string>& order);

}  // namespace muster

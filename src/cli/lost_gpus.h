#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/device.h"
#include "spec/telemetry.h"

namespace muster {

/// What tells a CUDA program which GPUs to use; nullopt: not set.
struct CudaVariables {
  std::optional<std::string> visible = {};  // CUDA_VISIBLE_DEVICES
  std::optional<std::string> order = {};    // CUDA_DEVICE_ORDER

  static CudaVariables of_environment();
};

/// Notes in `gpus` (devices_for_work) which of them are lost, in the words that their driver said
/// at the last look. Not of one that CUDA_VISIBLE_DEVICES leaves out on purpose: it is hidden, and
/// nobody asks for it. Where a name in that variable fits no GPU, or it names one without a UUID
/// that CUDA counts no more as another is gone, the lost one may have been meant. One that this
/// user may not open is hidden by its driver.
///
/// Where one is lost, numbers in that variable mean what they meant before: CUDA would count the
/// others anew, so that "1" of three is the last where the first is lost. `hidden_by` of those that
/// have a UUID is set right for it, since workers are given them by UUID.
///
/// watched: all devices, as they are now. Threads: pure.
void mark_lost(std::vector<Device>& gpus, const std::vector<DeviceStatus>& watched,
               const CudaVariables& variables);

/// What the user of a list of devices is told where GPUs that it could have meant are lost: "cuda:0
/// is lost: GPU is lost (NVML 15); the work goes to cuda:1". nullopt: none is, or each device is
/// named by itself, or those that are lost would not have been taken ("2xcuda" behind two that
/// work).
///
/// names: as --devices; chosen: what they mean here; most: no more than so many were taken.
/// Threads: pure.
std::optional<std::string> lost_gpus_notice(std::string_view names, const Inventory& inventory,
                                            const std::vector<Device>& chosen,
                                            std::optional<std::size_t> most = std::nullopt);

}  // namespace muster

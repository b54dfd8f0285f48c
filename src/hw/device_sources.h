#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "hw/device_sampler.h"
#include "hw/inventory.h"
#include "spec/machine.h"

namespace muster {

/// NVIDIA's GPUs and their MIG slices, by NVML (nvml_source.cpp). `device` of an event is an index
/// into `samplers`. root: in front of /proc, where processes' names and MPS's pid file are read.
/// visible: CUDA_VISIBLE_DEVICES, order: CUDA_DEVICE_ORDER, nullopt where not set.
///
/// A GPU that the driver lists but cannot open, or that does not answer in time, stays in the list
/// with what is known of it, and every visit to it says that it is lost. While a call of opening
/// has not returned, the end of `keep_alive` waits for it.
///
/// Errors: Unavailable with the reason in words. Source: NVML API reference; header 13.3.
struct NvmlOptions {
  std::vector<std::string> libraries = {
      "libnvidia-ml.so.1",                    // never ".so": on a toolkit that is a stub
      "/usr/lib/wsl/lib/libnvidia-ml.so.1"};  // Windows Subsystem for Linux
  std::filesystem::path root = "/";
  std::optional<std::string> cuda_visible_devices;
  std::optional<std::string> cuda_device_order;
  std::optional<std::string> mps_pipe_directory;  // CUDA_MPS_PIPE_DIRECTORY
};
Result<DeviceSource> open_nvml(const NvmlOptions& options, CallWatch& watch);

/// AMD's GPUs by sysfs, hwmon and KFD (amd_source.cpp); no library of the vendor is opened.
///
/// Errors: Unavailable when there is none. Source: Linux, Documentation/gpu/amdgpu/; the kernel's
/// kgd_pp_interface.h for gpu_metrics.
Result<DeviceSource> open_amd(const std::filesystem::path& root);

/// Stand-ins for GPUs (spec/standin_device.h), for tests: those with a file in the folder
/// (standin_source.cpp).
///
/// Errors: Unavailable when there is none.
Result<DeviceSource> open_standins(const std::filesystem::path& folder);

/// The CPU devices of an inventory (cpu_source.cpp): load, frequency, RAPL energy, memory within
/// the cgroups; cpu:0 carries what is the machine's.
DeviceSource open_cpu(const Inventory& inventory, const std::filesystem::path& root);

/// The devices of a simulated machine under a load that moves (simulated_source.cpp). The same seed
/// and clock give the same readings, so tests and replays are exact. links: among all devices of
/// the machine, or among its GPUs that are no slices.
DeviceSource open_simulated(const Machine& machine, const LinkMatrix& links, const Clock& clock,
                            std::uint64_t seed);

}  // namespace muster

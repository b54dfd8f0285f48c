// The driver's library is opened at run time, so that one program runs with any driver and with
// none. Functions are found by name, newest version first, and all but a few may be missing: an
// absent function answers like a driver that does not support the call, so callers have one case
// less. A version that takes another struct is left out of the list or marked by a flag. Source:
// nvml.h 13.3.

#include "hw/nvml/nvml_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <initializer_list>

namespace muster {
namespace {

class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <typename... Parameters>
  void find(NvmlFunction<Parameters...>& function, std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (void* symbol = dlsym(library_, name)) {
        function.name = name;
        function.address = reinterpret_cast<NvmlCode (*)(Parameters...)>(symbol);
        return;
      }
    }
  }

  bool has(const char* name) const { return dlsym(library_, name) != nullptr; }

 private:
  void* library_;
};

void find_identity(const Symbols& symbols, NvmlFunctions& nvml) {
  symbols.find(nvml.init, {"nvmlInit_v2", "nvmlInit"});
  symbols.find(nvml.shutdown, {"nvmlShutdown"});
  symbols.find(nvml.driver_version, {"nvmlSystemGetDriverVersion"});
  symbols.find(nvml.cuda_version,
               {"nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"});
  symbols.find(nvml.count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  symbols.find(nvml.handle, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  symbols.find(nvml.uuid, {"nvmlDeviceGetUUID"});
  symbols.find(nvml.name, {"nvmlDeviceGetName"});
  symbols.find(nvml.serial, {"nvmlDeviceGetSerial"});
  symbols.find(nvml.vbios, {"nvmlDeviceGetVbiosVersion"});
  // Not the unversioned one: its struct is shorter.
  symbols.find(nvml.pci, {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2"});
  symbols.find(nvml.capability, {"nvmlDeviceGetCudaComputeCapability"});
  symbols.find(nvml.core_count, {"nvmlDeviceGetNumGpuCores"});
  symbols.find(nvml.persistence, {"nvmlDeviceGetPersistenceMode"});
  symbols.find(nvml.compute_mode, {"nvmlDeviceGetComputeMode"});
  symbols.find(nvml.ecc_mode, {"nvmlDeviceGetEccMode"});
  symbols.find(nvml.mig_mode, {"nvmlDeviceGetMigMode"});
  symbols.find(nvml.addressing_mode, {"nvmlDeviceGetAddressingMode"});
  symbols.find(nvml.memory_affinity, {"nvmlDeviceGetMemoryAffinity"});
}

void find_readings(const Symbols& symbols, NvmlFunctions& nvml) {
  symbols.find(nvml.field_values, {"nvmlDeviceGetFieldValues"});
  symbols.find(nvml.utilization, {"nvmlDeviceGetUtilizationRates"});
  symbols.find(nvml.clock_events, {"nvmlDeviceGetCurrentClocksEventReasons",
                                   "nvmlDeviceGetCurrentClocksThrottleReasons"});
  symbols.find(nvml.energy, {"nvmlDeviceGetTotalEnergyConsumption"});
  symbols.find(nvml.power, {"nvmlDeviceGetPowerUsage"});
  symbols.find(nvml.memory_v2, {"nvmlDeviceGetMemoryInfo_v2"});
  symbols.find(nvml.memory, {"nvmlDeviceGetMemoryInfo"});
  symbols.find(nvml.temperature_v, {"nvmlDeviceGetTemperatureV"});
  symbols.find(nvml.temperature, {"nvmlDeviceGetTemperature"});
  symbols.find(nvml.temperature_threshold, {"nvmlDeviceGetTemperatureThreshold"});
  symbols.find(nvml.margin, {"nvmlDeviceGetMarginTemperature"});
  symbols.find(nvml.clock, {"nvmlDeviceGetClockInfo"});
  symbols.find(nvml.max_clock, {"nvmlDeviceGetMaxClockInfo"});
  symbols.find(nvml.power_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
  symbols.find(nvml.power_limit_default, {"nvmlDeviceGetPowerManagementDefaultLimit"});
  symbols.find(nvml.power_limits, {"nvmlDeviceGetPowerManagementLimitConstraints"});
  symbols.find(nvml.pcie_generation, {"nvmlDeviceGetCurrPcieLinkGeneration"});
  symbols.find(nvml.pcie_lanes, {"nvmlDeviceGetCurrPcieLinkWidth"});
  symbols.find(nvml.pcie_generation_max, {"nvmlDeviceGetMaxPcieLinkGeneration"});
  symbols.find(nvml.pcie_lanes_max, {"nvmlDeviceGetMaxPcieLinkWidth"});
  symbols.find(nvml.pcie_replays, {"nvmlDeviceGetPcieReplayCounter"});
  symbols.find(nvml.ecc_errors, {"nvmlDeviceGetTotalEccErrors"});
  symbols.find(nvml.remapped_rows, {"nvmlDeviceGetRemappedRows"});
  symbols.find(nvml.retired_pages, {"nvmlDeviceGetRetiredPages"});
}

void find_links_and_slices(const Symbols& symbols, NvmlFunctions& nvml) {
  symbols.find(nvml.link_state, {"nvmlDeviceGetNvLinkState"});
  symbols.find(nvml.link_remote_type, {"nvmlDeviceGetNvLinkRemoteDeviceType"});
  symbols.find(nvml.link_remote_pci,
               {"nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemotePciInfo"});
  symbols.find(nvml.common_ancestor, {"nvmlDeviceGetTopologyCommonAncestor"});
  symbols.find(nvml.mig_count, {"nvmlDeviceGetMaxMigDeviceCount"});
  symbols.find(nvml.mig_handle, {"nvmlDeviceGetMigDeviceHandleByIndex"});
  symbols.find(nvml.gpu_instance, {"nvmlDeviceGetGpuInstanceId"});
  symbols.find(nvml.compute_instance, {"nvmlDeviceGetComputeInstanceId"});
  symbols.find(nvml.attributes, {"nvmlDeviceGetAttributes_v2"});
}

void find_processes(const Symbols& symbols, NvmlFunctions& nvml) {
  symbols.find(nvml.compute_processes, {"nvmlDeviceGetComputeRunningProcesses_v3",
                                        "nvmlDeviceGetComputeRunningProcesses_v2"});
  symbols.find(nvml.graphics_processes, {"nvmlDeviceGetGraphicsRunningProcesses_v3",
                                         "nvmlDeviceGetGraphicsRunningProcesses_v2"});
  symbols.find(nvml.mps_processes, {"nvmlDeviceGetMPSComputeRunningProcesses_v3",
                                    "nvmlDeviceGetMPSComputeRunningProcesses_v2"});
  if (!nvml.compute_processes && !nvml.graphics_processes && !nvml.mps_processes) {
    nvml.has_v1_processes = true;
    symbols.find(nvml.compute_processes, {"nvmlDeviceGetComputeRunningProcesses"});
    symbols.find(nvml.graphics_processes, {"nvmlDeviceGetGraphicsRunningProcesses"});
    symbols.find(nvml.mps_processes, {"nvmlDeviceGetMPSComputeRunningProcesses"});
  }
  symbols.find(nvml.process_name, {"nvmlSystemGetProcessName"});
  // These drivers knew protected memory and had no list of their own for it yet.
  // Source: nvitop, nvitop/api/libnvml.py, on the 535 series.
  nvml.may_have_long_processes = symbols.has("nvmlDeviceGetConfComputeMemSizeInfo") &&
                                 !symbols.has("nvmlDeviceGetRunningProcessDetailList");
}

void find_gpm_and_events(const Symbols& symbols, NvmlFunctions& nvml) {
  symbols.find(nvml.gpm_support, {"nvmlGpmQueryDeviceSupport"});
  symbols.find(nvml.gpm_alloc, {"nvmlGpmSampleAlloc"});
  symbols.find(nvml.gpm_free, {"nvmlGpmSampleFree"});
  symbols.find(nvml.gpm_sample, {"nvmlGpmSampleGet"});
  symbols.find(nvml.gpm_mig_sample, {"nvmlGpmMigSampleGet"});
  symbols.find(nvml.gpm_metrics, {"nvmlGpmMetricsGet"});
  symbols.find(nvml.event_create, {"nvmlEventSetCreate"});
  symbols.find(nvml.event_free, {"nvmlEventSetFree"});
  symbols.find(nvml.event_types, {"nvmlDeviceGetSupportedEventTypes"});
  symbols.find(nvml.event_register, {"nvmlDeviceRegisterEvents"});
  // The first version's struct ends before the instances; only the second fills them.
  symbols.find(nvml.event_wait, {"nvmlEventSetWait_v2", "nvmlEventSetWait"});
}

}  // namespace

Result<std::shared_ptr<const NvmlLibrary>> NvmlLibrary::open(const std::vector<std::string>& names,
                                                             CallWatch& watch) {
  void* opened = nullptr;
  for (const auto& name : names) {
    opened = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (opened != nullptr) break;
  }
  if (opened == nullptr) {
    return Error{ErrorKind::Unavailable,
                 fmt::format("no NVIDIA driver ({})", names.empty() ? "" : names.front())};
  }
  const std::shared_ptr<NvmlLibrary> library(new NvmlLibrary(opened));
  auto& nvml = library->functions_;
  const Symbols symbols(opened);
  find_identity(symbols, nvml);
  find_readings(symbols, nvml);
  find_links_and_slices(symbols, nvml);
  find_processes(symbols, nvml);
  find_gpm_and_events(symbols, nvml);
  nvml.error_string = reinterpret_cast<const char* (*)(NvmlCode)>(dlsym(opened, "nvmlErrorString"));
  if (!nvml.init || !nvml.count || !nvml.handle) {
    return Error{ErrorKind::Unavailable, "the NVIDIA driver is too old: NVML lacks a function"};
  }
  NvmlCaller call(watch);
  if (const auto code = call(nvml.init); code != kNvmlSuccess) {
    return Error{ErrorKind::Unavailable,
                 "the NVIDIA driver does not start: " + library->explain(code)};
  }
  library->is_initialised_ = true;
  return std::shared_ptr<const NvmlLibrary>(library);
}

NvmlLibrary::~NvmlLibrary() {
  if (is_initialised_ && functions_.shutdown) functions_.shutdown.address();
  dlclose(library_);
}

std::string NvmlLibrary::explain(NvmlCode code) const {
  const char* words = functions_.error_string != nullptr ? functions_.error_string(code) : nullptr;
  return words != nullptr ? fmt::format("{} (NVML {})", words, code) : fmt::format("NVML {}", code);
}

}  // namespace muster

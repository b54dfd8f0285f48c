#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "hw/device_sampler.h"
#include "hw/nvml/nvml_abi.h"

namespace muster {

/// One entry point of the library, by the name under which it was found; null where it is missing.
template <typename... Parameters>
struct NvmlFunction {
  const char* name = nullptr;
  NvmlCode (*address)(Parameters...) = nullptr;

  explicit operator bool() const { return address != nullptr; }
};

/// Every entry point that is used. Newest name first: a driver keeps the old ones with the old
/// meaning. Any may be missing.
struct NvmlFunctions {
  template <typename... Parameters>
  using F = NvmlFunction<Parameters...>;
  using Device = NvmlDevice;
  using Text = F<Device, char*, unsigned>;
  using Number = F<Device, unsigned*>;
  using BigNumber = F<Device, unsigned long long*>;
  using Processes = F<Device, unsigned*, void*>;

  F<> init, shutdown;
  const char* (*error_string)(NvmlCode) = nullptr;
  F<char*, unsigned> driver_version;
  F<int*> cuda_version;
  F<unsigned, char*, unsigned> process_name;
  F<unsigned*> count;
  F<unsigned, Device*> handle;
  Text uuid, name, serial, vbios;
  F<Device, NvmlPciInfo*> pci;
  F<Device, int*, int*> capability;
  Number core_count, persistence, compute_mode;
  F<Device, unsigned*, unsigned*> ecc_mode, mig_mode;
  F<Device, NvmlAddressingMode*> addressing_mode;
  F<Device, unsigned, unsigned long*, unsigned> memory_affinity;

  F<Device, int, NvmlFieldValue*> field_values;
  F<Device, NvmlUtilization*> utilization;
  BigNumber clock_events, energy;
  Number power;
  F<Device, NvmlMemoryV2*> memory_v2;
  F<Device, NvmlMemory*> memory;
  F<Device, NvmlTemperature*> temperature_v;
  F<Device, unsigned, unsigned*> temperature, temperature_threshold, clock, max_clock;
  F<Device, NvmlMarginTemperature*> margin;
  Number power_limit, power_limit_default;
  F<Device, unsigned*, unsigned*> power_limits;
  Number pcie_generation, pcie_lanes, pcie_generation_max, pcie_lanes_max, pcie_replays;
  F<Device, unsigned, unsigned, unsigned long long*> ecc_errors;
  F<Device, unsigned*, unsigned*, unsigned*, unsigned*> remapped_rows;
  F<Device, unsigned, unsigned*, unsigned long long*> retired_pages;

  F<Device, unsigned, unsigned*> link_state, link_remote_type;
  F<Device, unsigned, NvmlPciInfo*> link_remote_pci;
  F<Device, Device, unsigned*> common_ancestor;

  Number mig_count, gpu_instance, compute_instance;
  F<Device, unsigned, Device*> mig_handle;
  F<Device, NvmlAttributes*> attributes;

  Processes compute_processes, graphics_processes, mps_processes;
  bool has_v1_processes = false;         // the entries are the 16-byte ones
  bool may_have_long_processes = false;  // this driver may write the 32-byte ones

  F<Device, NvmlGpmSupport*> gpm_support;
  F<NvmlGpmSample*> gpm_alloc;
  F<NvmlGpmSample> gpm_free;
  F<Device, NvmlGpmSample> gpm_sample;
  F<Device, unsigned, NvmlGpmSample> gpm_mig_sample;
  F<NvmlGpmMetrics*> gpm_metrics;

  F<NvmlEventSet*> event_create;
  F<NvmlEventSet> event_free;
  BigNumber event_types;
  F<Device, unsigned long long, NvmlEventSet> event_register;
  F<NvmlEventSet, NvmlEventData*, unsigned> event_wait;
};

/// Makes the calls, telling a watch of each, and counts them.
///
/// Threads: not thread-safe; as the watch, of one thread.
class NvmlCaller {
 public:
  explicit NvmlCaller(CallWatch& watch) : watch_(watch) {}

  /// The function's own code; kNvmlFunctionNotFound, without a call, where it is missing.
  template <typename... Parameters, typename... Arguments>
  NvmlCode operator()(const NvmlFunction<Parameters...>& function, Arguments... arguments) {
    if (!function) return kNvmlFunctionNotFound;
    const TimePoint begin = std::chrono::steady_clock::now();
    watch_.enter(function.name, begin);
    const NvmlCode code = function.address(arguments...);
    const Duration took = std::chrono::steady_clock::now() - begin;
    watch_.leave(function.name, code, took);
    ++call_count_;
    took_ += took;
    return code;
  }

  std::uint32_t call_count() const { return call_count_; }
  Duration took() const { return took_; }

 private:
  CallWatch& watch_;
  std::uint32_t call_count_ = 0;
  Duration took_{};
};

/// libnvidia-ml.so.1, opened and initialised; closed when this goes.
///
/// Threads: immutable; NVML itself is thread-safe.
class NvmlLibrary {
 public:
  /// The first of `names` that opens.
  ///
  /// Errors: Unavailable, with the reason in words for people: no driver, one that refuses, one
  /// that lacks what nothing can be done without (init, shutdown, count, handle).
  static Result<std::shared_ptr<const NvmlLibrary>> open(const std::vector<std::string>& names,
                                                         CallWatch& watch);
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;
  ~NvmlLibrary();

  const NvmlFunctions& functions() const { return functions_; }

  /// "GPU is lost (NVML 15)", in the driver's own words where it has some.
  std::string explain(NvmlCode code) const;

 private:
  explicit NvmlLibrary(void* library) : library_(library) {}

  void* library_;
  NvmlFunctions functions_;
  bool is_initialised_ = false;
};

}  // namespace muster

#include <algorithm>
#include <cmath>

#include "fake_nvml/driver.h"
#include "fake_nvml/memory_use.h"

namespace muster::fake_nvml {
namespace {

// Source: an H100's `nvidia-smi -q`: 87 C is where T.Limit is 0; slowdown at -2, shutdown at -8.
constexpr std::int32_t kCoreMaxCelsius = 87;
constexpr std::int32_t kSlowdownCelsius = 89;
constexpr std::int32_t kShutdownCelsius = 95;
constexpr std::int32_t kMemoryMaxCelsius = 95;

// What a call for PCIe throughput watches. Source: nvml.h 13.3, nvmlDeviceGetPcieThroughput.
constexpr std::int64_t kThroughputWindowNs = 20'000'000;

std::uint32_t to_milliwatts(double watts) {
  return static_cast<std::uint32_t>(std::lround(watts * 1e3));
}

/// An answer that is one number, of a whole GPU.
template <typename Number, typename Work>
int get(Function function, DeviceHandle device, Number* out, Work work) {
  return answer_gpu(function, device, [&](const Visit& visit) -> int {
    if (out == nullptr) return kInvalidArgument;
    const std::optional<Number> number = work(visit);
    if (!number) return kNotSupported;
    *out = *number;
    return kSuccess;
  });
}

std::optional<unsigned> power_limit_mw(const Visit& visit) {
  const auto limit = visit.gpu.sensor.value(ValueId::PowerLimit, visit.now_ns,
                                            visit.spec().model->power_limit_watts);
  if (!limit) return std::nullopt;
  return to_milliwatts(*limit);
}

std::optional<std::uint64_t> events_of(const Visit& visit) {
  return visit.gpu.sensor.clock_event_bits(visit.now_ns);
}

// Graphics and SM share a clock; the video clock keeps its ratio to it (H200: 1545 of 1980 MHz).
std::optional<unsigned> scaled_clock(unsigned domain, std::uint32_t sm, std::uint32_t memory) {
  constexpr double kVideoShare = 1545.0 / 1980.0;
  if (domain <= 1) return sm;
  if (domain == 2) return memory;
  if (domain == 3) return static_cast<unsigned>(sm * kVideoShare);
  return std::nullopt;
}

std::uint64_t supported_events() { return 511; }

}  // namespace

FAKENVML_EXPORT int nvmlDeviceGetUtilizationRates(DeviceHandle device, Utilization* rates) {
  return answer_gpu(Function::nvmlDeviceGetUtilizationRates, device, [&](const Visit& v) -> int {
    if (rates == nullptr) return kInvalidArgument;
    if (v.spec().mig) return kNotSupported;  // "not currently supported on MIG-enabled GPUs"
    rates->gpu = v.gpu.sensor.utilization_percent(v.now_ns);
    rates->memory = v.gpu.sensor.memory_busy_percent(v.now_ns);
    return kSuccess;
  });
}

FAKENVML_EXPORT int nvmlDeviceGetMemoryInfo(DeviceHandle device, Memory* memory) {
  return answer(Function::nvmlDeviceGetMemoryInfo, device, [&](const Visit& visit) -> int {
    if (memory == nullptr) return kInvalidArgument;
    const auto use = memory_use(visit);
    if (!use) return kNotSupported;
    *memory = {use->total, use->total - use->reserved - use->used, use->used + use->reserved};
    return kSuccess;
  });
}

FAKENVML_EXPORT int nvmlDeviceGetMemoryInfo_v2(DeviceHandle device, MemoryV2* memory) {
  return answer(Function::nvmlDeviceGetMemoryInfo_v2, device, [&](const Visit& visit) -> int {
    if (memory == nullptr) return kInvalidArgument;
    if (memory->version != version_of<MemoryV2>(2)) return kArgumentVersionMismatch;
    const auto use = memory_use(visit);
    if (!use) return kNotSupported;
    memory->total = use->total;
    memory->reserved = use->reserved;
    memory->free = use->total - use->reserved - use->used;
    memory->used = use->used;
    return kSuccess;
  });
}

FAKENVML_EXPORT int nvmlDeviceGetTemperature(DeviceHandle device, unsigned sensor, unsigned* out) {
  return get(Function::nvmlDeviceGetTemperature, device, out,
             [&](const Visit& visit) -> std::optional<unsigned> {
               const auto celsius = visit.gpu.sensor.core_celsius(visit.now_ns);
               if (sensor != 0 || !celsius) return std::nullopt;
               return static_cast<unsigned>(*celsius);
             });
}

FAKENVML_EXPORT int nvmlDeviceGetTemperatureV(DeviceHandle device, Temperature* out) {
  return answer_gpu(Function::nvmlDeviceGetTemperatureV, device, [&](const Visit& visit) -> int {
    if (out == nullptr) return kInvalidArgument;
    if (out->version != version_of<Temperature>(1)) return kArgumentVersionMismatch;
    const auto celsius = visit.gpu.sensor.core_celsius(visit.now_ns);
    if (out->sensor != 0 || !celsius) return kNotSupported;
    out->celsius = *celsius;
    return kSuccess;
  });
}

FAKENVML_EXPORT int nvmlDeviceGetTemperatureThreshold(DeviceHandle device, unsigned kind,
                                                      unsigned* out) {
  return get(Function::nvmlDeviceGetTemperatureThreshold, device, out,
             [&](const Visit& visit) -> std::optional<unsigned> {
               if (kind == 0) return kShutdownCelsius;
               if (kind == 1) return kSlowdownCelsius;
               if (kind == 2 && visit.spec().model->has_memory_temperature)
                 return kMemoryMaxCelsius;
               if (kind == 3) return kCoreMaxCelsius;
               return std::nullopt;
             });
}

FAKENVML_EXPORT int nvmlDeviceGetMarginTemperature(DeviceHandle device, MarginTemperature* out) {
  return answer_gpu(Function::nvmlDeviceGetMarginTemperature, device,
                    [&](const Visit& visit) -> int {
                      if (out == nullptr) return kInvalidArgument;
                      if (out->version != version_of<MarginTemperature>(1)) {
                        return kArgumentVersionMismatch;
                      }
                      const auto celsius = visit.gpu.sensor.core_celsius(visit.now_ns);
                      if (!celsius || visit.spec().model->architecture < Architecture::Ada) {
                        return kNotSupported;
                      }
                      out->celsius = kCoreMaxCelsius - *celsius;
                      return kSuccess;
                    });
}

FAKENVML_EXPORT int nvmlDeviceGetFanSpeed(DeviceHandle device, unsigned* percent) {
  return get(Function::nvmlDeviceGetFanSpeed, device, percent,
             [](const Visit& visit) -> std::optional<unsigned> {
               const auto celsius = visit.gpu.sensor.core_celsius(visit.now_ns);
               if (!visit.spec().model->has_fan || !celsius) return std::nullopt;
               return static_cast<unsigned>(std::clamp(*celsius, 0, 100));
             });
}

FAKENVML_EXPORT int nvmlDeviceGetPerformanceState(DeviceHandle device, unsigned* state) {
  return get(Function::nvmlDeviceGetPerformanceState, device, state,
             [](const Visit&) { return std::optional<unsigned>(0); });
}

FAKENVML_EXPORT int nvmlDeviceGetPowerUsage(DeviceHandle device, unsigned* power) {
  return get(Function::nvmlDeviceGetPowerUsage, device, power, [](const Visit& visit) {
    // "On Ampere (except GA100) or newer GPUs, the API returns power averaged over 1 sec interval."
    const auto& sensor = visit.gpu.sensor;
    const auto& model = *visit.spec().model;
    const bool is_average =
        model.architecture >= Architecture::Ampere && model.compute_capability != 80;
    return std::optional(to_milliwatts(is_average ? sensor.average_watts(visit.now_ns)
                                                  : sensor.instant_watts(visit.now_ns)));
  });
}

FAKENVML_EXPORT int nvmlDeviceGetTotalEnergyConsumption(DeviceHandle device, std::uint64_t* out) {
  return get(Function::nvmlDeviceGetTotalEnergyConsumption, device, out,
             [](const Visit& visit) { return visit.gpu.sensor.energy_mj(visit.now_ns); });
}

FAKENVML_EXPORT int nvmlDeviceGetEnforcedPowerLimit(DeviceHandle device, unsigned* limit) {
  return get(Function::nvmlDeviceGetEnforcedPowerLimit, device, limit, power_limit_mw);
}

FAKENVML_EXPORT int nvmlDeviceGetPowerManagementLimit(DeviceHandle device, unsigned* limit) {
  return get(Function::nvmlDeviceGetPowerManagementLimit, device, limit, power_limit_mw);
}

FAKENVML_EXPORT int nvmlDeviceGetPowerManagementDefaultLimit(DeviceHandle device, unsigned* limit) {
  return get(Function::nvmlDeviceGetPowerManagementDefaultLimit, device, limit,
             [](const Visit& visit) {
               return std::optional(to_milliwatts(visit.spec().model->power_limit_watts));
             });
}

FAKENVML_EXPORT int nvmlDeviceGetPowerManagementLimitConstraints(DeviceHandle device, unsigned* min,
                                                                 unsigned* max) {
  return answer_gpu(Function::nvmlDeviceGetPowerManagementLimitConstraints, device,
                    [&](const Visit& visit) -> int {
                      if (min == nullptr || max == nullptr) return kInvalidArgument;
                      *min = to_milliwatts(visit.spec().model->power_limit_min_watts);
                      *max = to_milliwatts(visit.spec().model->power_limit_watts);
                      return kSuccess;
                    });
}

FAKENVML_EXPORT int nvmlDeviceGetClockInfo(DeviceHandle device, unsigned domain, unsigned* mhz) {
  return get(Function::nvmlDeviceGetClockInfo, device, mhz, [&](const Visit& visit) {
    return scaled_clock(domain, visit.gpu.sensor.sm_clock_mhz(visit.now_ns),
                        visit.spec().model->memory_clock_mhz);
  });
}

FAKENVML_EXPORT int nvmlDeviceGetMaxClockInfo(DeviceHandle device, unsigned domain, unsigned* mhz) {
  return get(Function::nvmlDeviceGetMaxClockInfo, device, mhz, [&](const Visit& visit) {
    const auto& model = *visit.spec().model;
    return scaled_clock(domain, model.sm_clock_max_mhz, model.memory_clock_mhz);
  });
}

FAKENVML_EXPORT int nvmlDeviceGetCurrentClocksEventReasons(DeviceHandle device,
                                                           std::uint64_t* bits) {
  return get(Function::nvmlDeviceGetCurrentClocksEventReasons, device, bits, events_of);
}

FAKENVML_EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(DeviceHandle device,
                                                              std::uint64_t* bits) {
  return get(Function::nvmlDeviceGetCurrentClocksThrottleReasons, device, bits, events_of);
}

FAKENVML_EXPORT int nvmlDeviceGetSupportedClocksEventReasons(DeviceHandle device,
                                                             std::uint64_t* bits) {
  return get(Function::nvmlDeviceGetSupportedClocksEventReasons, device, bits,
             [](const Visit&) { return std::optional(supported_events()); });
}

FAKENVML_EXPORT int nvmlDeviceGetSupportedClocksThrottleReasons(DeviceHandle device,
                                                                std::uint64_t* bits) {
  return get(Function::nvmlDeviceGetSupportedClocksThrottleReasons, device, bits,
             [](const Visit&) { return std::optional(supported_events()); });
}

FAKENVML_EXPORT int nvmlDeviceGetPcieThroughput(DeviceHandle device, unsigned counter,
                                                unsigned* out) {
  return get(Function::nvmlDeviceGetPcieThroughput, device, out,
             [&](const Visit& visit) -> std::optional<unsigned> {
               if (counter > 1) return std::nullopt;
               const auto& traffic = visit.spec().traffic;
               const double rate = counter == 0 ? traffic.pcie_sent : traffic.pcie_received;
               const double load =
                   visit.gpu.sensor.mean_load(visit.now_ns - kThroughputWindowNs, visit.now_ns);
               return static_cast<unsigned>(std::lround(rate * load / 1e3));
             });
}

}  // namespace muster::fake_nvml
